package containerd

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weir-io/weir/internal/daemon/cri"
	"github.com/weir-io/weir/internal/daemon/grpc"
	"github.com/weir-io/weir/internal/daemon/grpc/grpctest"
)

// sendMost is what a daemon of these tests sends in one message, as containerd does by default.
const sendMost = 16 << 20

// A fake container has a specification of that many bytes, and labels.
type fake struct {
	id      string
	running bool
	spec    int
	label   string
}

func (f fake) message() []byte {
	label := grpc.AppendString(grpc.AppendString(nil, 1, "tier"), 2, f.label)
	m := grpc.AppendString(grpc.AppendString(nil, 1, f.id), 2, string(label))
	m = grpc.AppendString(grpc.AppendString(m, 3, "image"), 5, string(bytes.Repeat([]byte("e"), f.spec)))
	return grpc.AppendString(nil, 1, string(m))
}

// A large daemon answers as containerd does that sends no message larger than sendMost. It has its containers in the order of
// their ids.
type large struct {
	all []fake

	mu    sync.Mutex
	asked map[string]int
}

var tooLarge = grpctest.Answer{Code: grpc.ResourceExhausted, Text: "trying to send message larger than max (16777217 vs. 16777216)"}

func (l *large) answer(method string, _ http.Header, request []byte) (a grpctest.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	method = method[strings.LastIndexByte(method, '.')+1:]
	l.asked[method]++
	switch method {
	case "Namespaces/List":
		a.Message = grpc.AppendString(nil, 1, string(grpc.AppendString(nil, 1, "k8s.io")))
	case "Tasks/List":
		for _, f := range l.all {
			if f.running {
				a.Message = grpc.AppendString(a.Message, 1, string(grpc.AppendNumber(grpc.AppendString(nil, 2, f.id), 3, 7)))
			}
		}
	case "Containers/ListStream":
		_, prefix, _ := strings.Cut(string(request), "^")
		var sent []fake
		for _, f := range l.all {
			if !strings.HasPrefix(f.id, prefix) {
				continue
			}
			if f.spec > sendMost { // the error comes after what was sent before it
				a.Code, a.Text = tooLarge.Code, tooLarge.Text
				break
			}
			sent = append(sent, f)
		}
		a.Stream = func(yield func([]byte) bool) {
			for _, f := range sent {
				if !yield(f.message()) {
					return
				}
			}
		}
	case "Containers/Get":
		for _, f := range l.all {
			if strings.Contains(string(request), f.id) {
				if a.Message = f.message(); len(a.Message) > sendMost {
					return tooLarge
				}
				return a
			}
		}
		a.Code, a.Text = grpc.NotFound, "container: not found"
	default: // Containers/List: no node of these tests has so few that they are one message
		return tooLarge
	}
	return a
}

// took returns how often each method was asked for since the last time.
func (l *large) took() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := l.asked
	l.asked = map[string]int{}
	return asked
}

func serve(t *testing.T, all ...fake) (*large, Kind) {
	l := &large{all: all, asked: map[string]int{}}
	return l, Kind{Address: grpctest.Serve(t, l.answer)}
}

// The containers of a large node are more than a message can have, and each is listed.
func TestALargeNode(t *testing.T) {
	const many = 2000
	var all []fake
	for i := range many {
		all = append(all, fake{fmt.Sprintf("c%04d", i), true, 12 << 10, fmt.Sprint("l", i)})
	}
	l, k := serve(t, all...)
	listed, err := k.List(t.Context())
	if err != nil || len(listed) != many {
		t.Fatalf("%d, %v", len(listed), err)
	}
	for i, one := range listed {
		if one.ID != all[i].id || one.Unread != nil || one.Labels["tier"] != all[i].label {
			t.Fatalf("%+v", one)
		}
	}
	if got := k.Live(t.Context(), "k8s.io/"); len(got) != many {
		t.Errorf("%d names", len(got))
	}
	if asked := l.took(); asked["Tasks/List"]+asked["Containers/Get"] != 0 {
		t.Errorf("asked %v", asked)
	}
	// A look at each of them, by its id, has containerd look through none of the others.
	for _, f := range all[:10] {
		if id, err := (client{k.Address, "k8s.io"}).find(t.Context(), f.id); id != f.id || err != nil {
			t.Errorf("%s: %q, %v", f.id, id, err)
		}
	}
	if _, err := (client{k.Address, "k8s.io"}).find(t.Context(), strings.Repeat("0a", 32)); !errors.Is(err, errNone) {
		t.Error(err)
	}
	if asked := l.took(); asked["Containers/Get"] != 11 || asked["Containers/ListStream"] != 0 {
		t.Errorf("asked %v", asked)
	}
}

// A container that is too large to be sent, or whose labels are too large to be kept, keeps no other from being listed: it
// is named, and that its labels are not known.
func TestAContainerThatIsTooLarge(t *testing.T) {
	all := []fake{
		{"a", true, 10, "first"}, {"b", true, sendMost + 1, "lost"}, {"c", true, 10, "third"}, {"d", false, 10, "stopped"},
		{"e", true, sendMost + 1, "lost"}, {"f", true, 10, strings.Repeat("x", labelsMost)}, {"s", false, sendMost + 1, "stopped"},
	}
	l, k := serve(t, all...)
	listed, err := k.List(t.Context())
	got := map[string]string{}
	for _, one := range listed {
		if got[one.ID] = one.Labels["tier"]; one.Unread != nil {
			got[one.ID] = one.Unread.Error()
		}
	}
	if err != nil || len(got) != 5 || len(listed) != 5 || got["a"] != "first" || got["c"] != "third" {
		t.Fatalf("%q, %v", got, err)
	}
	for id, why := range map[string]string{"b": "its specification is larger than containerd sends", "e": "its specification is larger than containerd sends", "f": "the labels that its plan can depend on have more than 64 KiB"} {
		if want := "containerd:k8s.io/" + id + ": weir cannot tell its plan, and leaves its limits as they are: " + why; !strings.HasPrefix(got[id], want) {
			t.Errorf("%s: %q", id, got[id])
		}
	}
	if asked := l.took(); asked["Tasks/List"] != 1 || asked["Containers/Get"] != 4 {
		t.Errorf("asked %v", asked)
	}
	for id, want := range map[string]bool{"b": true, "c": true, "g": false, "s": true} { // it can be found, though
		if found, err := (client{k.Address, "k8s.io"}).find(t.Context(), id); (err == nil && found == id) != want {
			t.Errorf("%s: %q, %v", id, found, err)
		}
	}
}

// Labels that nobody needs are passed over, of any size. CRI-O's are, too.
func TestLabelsThatNobodyNeeds(t *testing.T) {
	large := grpc.AppendString(grpc.AppendString(nil, 1, "chart"), 2, strings.Repeat("x", 10<<20))
	small := grpc.AppendString(grpc.AppendString(nil, 1, "tier"), 2, "gold")
	for name, service := range map[string]string{"containerd": "/containerd.", "CRI-O": cri.Service} {
		k := Kind{Address: grpctest.Serve(t, func(method string, metadata http.Header, _ []byte) grpctest.Answer {
			var one []byte
			switch {
			case !strings.HasPrefix(method, service):
				return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown service " + method}
			case strings.HasSuffix(method, "Namespaces/List"):
				one = grpc.AppendString(nil, 1, criNamespace)
			case service == cri.Service:
				one = grpc.AppendNumber(grpc.AppendString(nil, 1, webID), listedState, 1)
				one = grpc.AppendString(grpc.AppendString(one, listedLabels, string(large)), listedLabels, string(small))
			default:
				one = grpc.AppendString(grpc.AppendString(grpc.AppendString(nil, 1, webID), 2, string(large)), 2, string(small))
			}
			return grpctest.Answer{Message: grpc.AppendString(nil, 1, string(one))}
		})}
		for needed, want := range map[string]map[string]string{"tier": {"tier": "gold"}, "chart": nil, "": {}} {
			k.Need.Label = func(name string) bool { return name == needed }
			all, err := k.List(t.Context())
			if err != nil || len(all) != 1 || (all[0].Unread == nil) == (needed == "chart") || !maps.Equal(all[0].Labels, want) {
				t.Errorf("%s, %q: %.200v, %v", name, needed, all, err)
			}
		}
	}
}

// An old containerd has no stream of its containers.
func TestAnOldContainerd(t *testing.T) {
	l, _ := serve(t, fake{id: "a", label: "first"})
	k := Kind{Address: grpctest.Serve(t, func(method string, metadata http.Header, request []byte) grpctest.Answer {
		switch {
		case strings.HasSuffix(method, "Containers/ListStream"):
			return grpctest.Answer{Code: grpc.Unimplemented, Text: "unknown method ListStream"}
		case strings.HasSuffix(method, "Containers/List"):
			return grpctest.Answer{Message: l.all[0].message()}
		}
		return l.answer(method, metadata, request)
	})}
	if all, err := k.List(t.Context()); err != nil || len(all) != 1 || all[0].Labels["tier"] != "first" {
		t.Errorf("%+v, %v", all, err)
	}
}
