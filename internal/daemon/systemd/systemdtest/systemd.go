// Package systemdtest stands in for the systemd of a copy of a machine. It speaks D-Bus with who
// connects, notes what it is asked, and does it as far as files show it: rules, and drop-ins.
package systemdtest

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/weir-io/weir/internal/daemon/systemd"
)

// Asked is a property that somebody has asked for.
type Asked struct {
	Unit, Property string // "x.service", "IOAccounting=true"
	Persist        bool   // over boots
	New            bool   // of a unit that is made
}

// A Systemd knows units, and whom it was asked about.
type Systemd struct {
	root string
	// Rules is told of each rate that a unit gets, as the kernel would be: for example
	// "IOWriteBandwidthMax", "8:0" and "5", or "max". The device is the one that systemd goes to from
	// the path: below a logical volume on one disk, the disk. nil: nobody is told.
	Rules func(unit, property, device, rate string) error
	// Started is told of the first process of each new scope, and of a slice's, which is 0.
	Started func(unit string, pid int) error

	mu    sync.Mutex
	asked []Asked
	rates map[string]map[string]map[string]uint64 // of a unit, and property, and path
}

// rate is how systemd has one.
type rate struct {
	Path string
	Rate uint64
}

// New is the systemd of a machine whose files are below root.
func New(root string) *Systemd {
	return &Systemd{root: root, rates: map[string]map[string]map[string]uint64{}}
}

// Asked is all that was asked since the last call.
func (s *Systemd) Asked() []Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.asked
	s.asked = nil
	return all
}

// Dial connects to it, until the end of a test.
func (s *Systemd) Dial(t testing.TB) func(context.Context) (*systemd.Conn, error) {
	return func(context.Context) (*systemd.Conn, error) {
		ours, theirs := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			s.serve(ours)
		}()
		t.Cleanup(func() { // which may be closed already
			_ = theirs.Close()
			<-served
		})
		bus, err := dbus.NewConn(theirs)
		if err != nil {
			return nil, err
		}
		return systemd.On(bus, s.root), bus.Auth([]dbus.Auth{dbus.AuthExternal("0")})
	}
}

// serve answers one connection, until it is closed.
func (s *Systemd) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		answer := "OK 00000000000000000000000000000000\r\n"
		switch words := strings.Fields(strings.TrimPrefix(line, "\x00")); {
		case words[0] == "BEGIN":
			s.answerAll(in, conn)
			return
		case len(words) == 1:
			answer = "REJECTED EXTERNAL\r\n"
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (s *Systemd) answerAll(in io.Reader, out io.Writer) {
	for serial := uint32(1); ; serial++ {
		call, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		answer := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{}}
		body, err := s.do(call)
		if err != nil {
			answer.Type = dbus.TypeError
			answer.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.freedesktop.DBus.Error.Failed")
			body = []any{err.Error()}
		}
		answer.Headers[dbus.FieldReplySerial] = dbus.MakeVariant(call.Serial())
		if answer.Body = body; body != nil {
			answer.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
		}
		if err := answer.EncodeTo(out, binary.LittleEndian); err != nil {
			return
		}
	}
}

// do answers one call of a method.
func (s *Systemd) do(call *dbus.Message) ([]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	method, _ := call.Headers[dbus.FieldMember].Value().(string)
	object, _ := call.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
	switch method {
	case "Reload":
		return nil, nil
	case "GetUnit":
		name, _ := call.Body[0].(string)
		return []any{pathOf(name)}, nil
	case "SetUnitProperties":
		var unit string
		var runtime bool
		var settings []systemd.Setting
		if err := dbus.Store(call.Body, &unit, &runtime, &settings); err != nil {
			return nil, err
		}
		return nil, s.set(unit, settings, Asked{Persist: !runtime})
	case "StartTransientUnit":
		var unit, mode string
		var settings []systemd.Setting
		if err := dbus.Store(call.Body[:3], &unit, &mode, &settings); err != nil {
			return nil, err
		}
		return []any{dbus.ObjectPath("/job/1")}, s.start(unit, settings)
	case "Get":
		property, _ := call.Body[1].(string)
		return s.get(object, property)
	}
	return nil, fmt.Errorf("systemdtest does not know %s", method)
}

func (s *Systemd) get(object dbus.ObjectPath, property string) ([]any, error) {
	var value any
	switch property {
	case "IOReadBandwidthMax", "IOWriteBandwidthMax", "IOReadIOPSMax", "IOWriteIOPSMax":
		all := []rate{}
		for unit, properties := range s.rates {
			for path, n := range properties[property] {
				if pathOf(unit) == object {
					all = append(all, rate{path, n})
				}
			}
		}
		value = all
	case "ActiveState":
		value = "active"
	case "Job":
		value = struct {
			ID   uint32
			Path dbus.ObjectPath
		}{0, "/"}
	case "ControlGroup", "FragmentPath":
		value = ""
	case "DropInPaths":
		value = []string{}
	default:
		return nil, fmt.Errorf("systemdtest does not know %s", property)
	}
	return []any{dbus.MakeVariant(value)}, nil
}

// start makes a unit.
func (s *Systemd) start(unit string, settings []systemd.Setting) error {
	pid := 0
	for _, one := range settings {
		if pids, is := one.Value.Value().([]uint32); is && one.Name == "PIDs" && len(pids) == 1 {
			pid = int(pids[0])
		}
	}
	if s.Started != nil {
		if err := s.Started(unit, pid); err != nil {
			return err
		}
	}
	return s.set(unit, settings, Asked{New: true})
}

// set gives a unit properties.
func (s *Systemd) set(unit string, settings []systemd.Setting, as Asked) error {
	as.Unit = unit
	for _, one := range settings {
		var rates []rate
		if one.Value.Store(&rates) != nil {
			as.Property = one.String()
			s.asked = append(s.asked, as)
			continue
		}
		for _, r := range rates {
			text := fmt.Sprint(r.Rate)
			as.Property = fmt.Sprintf("%s=%s %s", one.Name, r.Path, text)
			if r.Rate == math.MaxUint64 {
				text = "max"
				as.Property = fmt.Sprintf("%s=%s infinity", one.Name, r.Path)
			}
			s.asked = append(s.asked, as)
			if err := s.rate(unit, one.Name, r, text); err != nil {
				return err
			}
		}
		if err := s.store(unit, one.Name, as); err != nil {
			return err
		}
	}
	return nil
}

func (s *Systemd) rate(unit, property string, r rate, text string) error {
	if s.rates[unit] == nil {
		s.rates[unit] = map[string]map[string]uint64{}
	}
	if s.rates[unit][property] == nil {
		s.rates[unit][property] = map[string]uint64{}
	}
	if s.rates[unit][property][r.Path] = r.Rate; text == "max" {
		delete(s.rates[unit][property], r.Path)
	}
	if s.Rules == nil {
		return nil
	}
	device, is := systemd.DeviceOf(context.Background(), s.root, r.Path)
	if !is {
		return nil // systemd writes no rule then
	}
	return s.Rules(unit, property, device.String(), text)
}

// store writes the drop-in of a property that systemd was told to keep.
func (s *Systemd) store(unit, property string, as Asked) error {
	if as.New {
		return nil
	}
	dir := "run/systemd/system.control"
	if as.Persist {
		dir = "etc/systemd/system.control"
	}
	text := "[Service]\n" + property + "=\n"
	for path, n := range s.rates[unit][property] {
		text += fmt.Sprintf("%s=%s %d\n", property, path, n)
	}
	file := filepath.Join(s.root, dir, unit+".d", "50-"+property+".conf")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

// pathOf is a unit's object.
func pathOf(unit string) dbus.ObjectPath { return systemd.ObjectOf(unit) }
