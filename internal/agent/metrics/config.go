package metrics

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v3"

	"github.com/weir-io/weir/internal/base/peek"
)

// configMost bounds the file of TLS keys and users, in bytes.
const configMost = 1 << 20

// A config is what weird itself has to know of the file of keys and users.
type config struct {
	TLS   tlsConfig         `yaml:"tls_server_config"`
	Users map[string]string `yaml:"basic_auth_users"`
}

type tlsConfig struct {
	Clients       string `yaml:"client_auth_type"`
	CertFile      string `yaml:"cert_file"`
	Cert          string `yaml:"cert"`
	KeyFile       string `yaml:"key_file"`
	ClientCAsFile string `yaml:"client_ca_file"`
	ClientCAs     string `yaml:"client_ca"`
}

// verifies is the client_auth_type with which a client needs a certificate of an authority.
const verifies = "RequireAndVerifyClientCert"

// Check reports what is wrong with the file of TLS keys and users. The server reads it, and the files that it names,
// again and again, so none may be a pipe, for which it would wait.
func (o Options) Check() error {
	c, err := o.config()
	var cannot *fs.PathError
	if errors.As(err, &cannot) {
		return err
	}
	if err = c.TLS.check(filepath.Dir(o.Config)); err == nil {
		err = web.Validate(o.Config)
	}
	if err == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.Users)) {
		if !strings.HasPrefix(c.Users[name], "$2") { // what Validate says of it names neither the user nor what to do
			return fmt.Errorf("read %s: basic_auth_users: what %q has is no bcrypt hash; make one: htpasswd -nBC 10 NAME", o.Config, name)
		}
	}
	return fmt.Errorf("read %s: %w", o.Config, err)
}

// check refuses what the server would take, and would not serve as it is meant.
func (c tlsConfig) check(dir string) error {
	for key, name := range map[string]string{"cert_file": c.CertFile, "key_file": c.KeyFile, "client_ca_file": c.ClientCAsFile} {
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		f, err := peek.Open(name)
		if errors.Is(err, peek.ErrNotRegular) {
			return fmt.Errorf("%s: %w; name a file", key, err)
		}
		if err == nil {
			_ = f.Close() // it was read only
		}
	}
	if c.Clients == verifies && c.ClientCAsFile+c.ClientCAs == "" {
		return fmt.Errorf("client_auth_type %s needs a client_ca_file: without it every certificate of an authority that this host trusts passes", verifies)
	}
	return nil
}

// AsksWho reports whether a client has to say who it is: the file has users, or wants certificates of
// clients that it can verify.
func (o Options) AsksWho() (bool, error) {
	c, err := o.config()
	return len(c.Users) > 0 || c.TLS.Clients == verifies, err
}

// Scheme is what a client's URL begins with: https if the file, which Check has taken, has a certificate.
func (o Options) Scheme() (string, error) {
	c, err := o.config()
	if c.TLS.CertFile+c.TLS.Cert != "" {
		return "https", err
	}
	return "http", err
}

func (o Options) config() (c config, err error) {
	if o.Config == "" {
		return c, nil
	}
	text, err := peek.Regular(o.Config, configMost)
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		return config{}, fmt.Errorf("read %s: %w", o.Config, err)
	}
	return c, nil
}
