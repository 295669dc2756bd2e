package planfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// published compiles the schema that editors use.
func published(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("../../../docs/plans.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("plans.json", tree); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("plans.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// judge says what the schema has to say of a file, as an editor reads it.
func judge(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		return err
	}
	data, err := json.Marshal(spelled(tree))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(value)
}

// spelled gives mappings the keys that JSON has.
func spelled(tree any) any {
	switch tree := tree.(type) {
	case map[any]any:
		keys := map[string]any{}
		for key, value := range tree {
			keys[fmt.Sprint(key)] = spelled(value)
		}
		return keys
	case map[string]any:
		for key, value := range tree {
			tree[key] = spelled(value)
		}
	case []any:
		for i, value := range tree {
			tree[i] = spelled(value)
		}
	}
	return tree
}

// The published schema and the parser judge each file alike. A refusal that is beyond a schema
// is marked so, and the schema must take that file.
func TestSchemaAgrees(t *testing.T) {
	schema := published(t)
	guide, err := os.ReadFile("../../../docs/guide/plans.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := []string{example, "plans: {p: {read: max, write: 0.5MB/s, read-iops: 1.5k/s, write-iops: +500 iops}}", "plans: {p: {read: 1.5, write: .5k, write-iops: 3KOPS}}", "{}"}
	for _, m := range regexp.MustCompile("(?s)~~~yaml\n(.*?)~~~").FindAllSubmatch(guide, -1) {
		examples = append(examples, string(m[1]))
	}
	if len(examples) < 6 {
		t.Errorf("only %d examples", len(examples))
	}
	for _, text := range examples {
		if _, err := Read(one(text)); err != nil {
			t.Errorf("the parser refuses %s: %v", text, err)
		}
		if err := judge(t, schema, text); err != nil {
			t.Errorf("the schema refuses %s: %v", text, err)
		}
	}
	for _, c := range refusals() {
		if err := judge(t, schema, c.text); (err == nil) != c.beyond {
			t.Errorf("the schema says of %.80q: %v; it takes it: want %v", c.text, err, c.beyond)
		}
	}
}
