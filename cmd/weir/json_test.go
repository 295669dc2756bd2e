package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/docs"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// documents are all that weir prints with --json.
func documents() map[string]any {
	return map[string]any{
		cli.SchemaOf("run").Schema:             &api.Run{},
		cli.SchemaOf("set").Schema:             &api.Set{},
		cli.SchemaOf("clear").Schema:           &api.Set{},
		cli.SchemaOf("show").Schema:            &api.Show{},
		cli.SchemaOf("why").Schema:             &api.Why{},
		cli.SchemaOf("prove").Schema:           &api.Proof{},
		cli.SchemaOf("trace").Schema:           &api.Trace{},
		cli.SchemaOf("demo").Schema:            &api.Demo{},
		cli.SchemaOf("trace.latency").Schema:   &api.Latency{},
		cli.SchemaOf("trace.dirty").Schema:     &api.Dirty{},
		cli.SchemaOf("import").Schema:          &api.Import{},
		cli.SchemaOf("plan").Schema:            &api.Plans{},
		cli.SchemaOf("plan.targets").Schema:    &api.PlanTargets{},
		cli.SchemaOf("plan.dry-run").Schema:    &api.DryRun{},
		cli.SchemaOf("volume").Schema:          &api.Volumes{},
		cli.SchemaOf("quota").Schema:           &api.Quota{},
		cli.SchemaOf("restore").Schema:         &api.Restore{},
		cli.SchemaOf("version").Schema:         &api.Version{},
		cli.SchemaOf("top").Schema:             &api.Top{},
		cli.SchemaOf("history").Schema:         &api.History{},
		cli.SchemaOf("health").Schema:          &api.Health{},
		cli.SchemaOf("agent").Schema:           &api.Agent{},
		cli.SchemaOf("agent.counts").Schema:    &api.AgentCounts{},
		cli.SchemaOf("agent.event").Schema:     &api.AgentEvent{},
		cli.SchemaOf("top.event").Schema:       &api.TopEvent{},
		cli.SchemaOf("log").Schema:             &api.Log{},
		cli.SchemaOf("error").Schema:           &api.Error{},
		cli.SchemaOf("run.dry-run").Schema:     &api.DryRun{},
		cli.SchemaOf("set.dry-run").Schema:     &api.DryRun{},
		cli.SchemaOf("clear.dry-run").Schema:   &api.DryRun{},
		cli.SchemaOf("restore.dry-run").Schema: &api.DryRun{},
		cli.SchemaOf("why.dry-run").Schema:     &api.WhyDryRun{},
		cli.SchemaOf("volume.dry-run").Schema:  &api.DryRun{},
		cli.SchemaOf("quota.dry-run").Schema:   &api.DryRun{},
	}
}

// TestJSONExamples holds the examples of docs/json.md against the documents: each is
// one of them, without a field too many, and together those of one kind have every field; and the
// text names each field.
func TestJSONExamples(t *testing.T) {
	lab.Unit(t)
	text, err := docs.Files.ReadFile("json.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[reflect.Type]map[string]bool{}
	examples := map[string]bool{}
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(text, -1) {
		example := m[1]
		var schema cli.Schema
		if err := json.Unmarshal(example, &schema); err != nil {
			t.Fatalf("%v in %s", err, example)
		}
		document := documents()[schema.Schema]
		if document == nil {
			t.Errorf("weir has no document %q", schema.Schema)
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(example))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(document); err != nil {
			t.Errorf("%s: %v", schema.Schema, err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Errorf("%s: more than one document", schema.Schema)
		}
		var tree any
		if err := json.Unmarshal(example, &tree); err != nil {
			t.Fatal(err)
		}
		kind := reflect.TypeOf(document)
		if shown[kind] == nil {
			shown[kind] = map[string]bool{}
		}
		addKeys(shown[kind], "", tree)
		examples[schema.Schema] = true
	}
	for schema, document := range documents() {
		fields := map[string]bool{}
		addFields(fields, "", reflect.TypeOf(document).Elem())
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if !shown[reflect.TypeOf(document)][field] {
				t.Errorf("%s: no example has %s", schema, field)
			}
			if name := field[strings.LastIndex(field, ".")+1:]; !regexp.MustCompile("`[a-z_.[\\]]*\\b" + name + "`").Match(text) {
				t.Errorf("%s: the text does not name %s", schema, field)
			}
		}
		if !examples[schema] {
			t.Errorf("%s: no example", schema)
		}
	}
}

// addKeys adds the path of each field of a decoded document.
func addKeys(keys map[string]bool, path string, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			keys[path+"."+name] = true
			addKeys(keys, path+"."+name, value)
		}
	case []any:
		for _, value := range tree {
			addKeys(keys, path, value)
		}
	}
}

// addFields adds the path of each field that a type's JSON has.
func addFields(fields map[string]bool, path string, typ reflect.Type) {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()} {
		if typ.Implements(own) {
			return
		}
	}
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice:
		addFields(fields, path, typ.Elem())
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous {
				addFields(fields, path, f.Type)
				continue
			}
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			fields[path+"."+name] = true
			addFields(fields, path+"."+name, f.Type)
		}
	}
}
