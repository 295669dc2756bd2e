package weir_test

import (
	"encoding/json"
	"testing"

	"github.com/weir-io/weir"
)

// A document is one of docs/json.md, in part.
type document map[string]any

func rate(n uint64) any {
	switch n {
	case 0:
		return nil
	case weir.Unlimited:
		return "max"
	}
	return n
}

func ratesIn(r weir.Rates) document {
	return document{"rbps": rate(r.RBPS), "wbps": rate(r.WBPS), "riops": rate(r.RIOPS), "wiops": rate(r.WIOPS)}
}

// each makes a list of documents.
func each[T any](all []T, one func(T) document) []document {
	list := []document{}
	for _, x := range all {
		list = append(list, one(x))
	}
	return list
}

func ownerIn(o weir.Owner) document {
	return with(document{"kind": o.Kind}, map[string]string{"name": o.Name})
}

func deviceIn(d weir.Device) document {
	doc := document{"device": d.Node, "number": d.Number, "limit": ratesIn(d.Limit), "foreign": nil,
		"expected": each(d.Expected, func(e weir.Expected) document {
			return document{"path": e.Path, "read": e.Read, "mechanism": e.Mechanism, "ahead": e.Ahead, "why": e.Why}
		})}
	if f := d.Foreign; f != nil {
		doc["foreign"] = document{"mechanism": f.Mechanism, "ahead": f.Ahead, "why": f.Why}
	}
	return doc
}

func shownIn(all []weir.Limited) document {
	return document{"window_seconds": 0, "groups": each(all, func(l weir.Limited) document {
		doc := document{"target": l.Target, "cgroup": l.Cgroup, "cgroup_version": l.CgroupVersion, "owner": ownerIn(l.Owner), "processes": l.Processes,
			"devices": each(l.Devices, func(d weir.Device) document {
				doc := deviceIn(d)
				doc["rates"] = nil
				if r := d.Rates; r != nil {
					doc["rates"] = document{"rbps": r.RBPS, "wbps": r.WBPS, "riops": r.RIOPS, "wiops": r.WIOPS}
				}
				return with(doc, map[string]string{"volume": d.Volume})
			})}
		if l.PacedWBPS != 0 {
			doc["paced_wbps"], doc["paced_escapes_wbps"] = l.PacedWBPS, l.EscapesWBPS
		}
		if l.Recorded != nil {
			doc["recorded"] = each(l.Recorded, func(r weir.Recorded) document {
				doc := document{"device": r.Device, "number": nil, "limit": ratesIn(r.Rates)}
				return with(doc, map[string]string{"number": r.Number})
			})
		}
		if l.Kept != nil {
			doc["kept"] = each(l.Kept, func(k weir.Kept) document {
				return document{"on": k.On, "limit": ratesIn(k.Rates), "hold": k.Hold}
			})
		}
		return with(doc, map[string]string{"paced_lapsed": l.PacedLapsed, "paced_missed": l.PacedMissed})
	})}
}

// with adds what is not empty.
func with(doc document, texts map[string]string) document {
	for key, text := range texts {
		if text != "" {
			doc[key] = text
		}
	}
	return doc
}

func stepsIn(steps []weir.Step) document {
	return document{"steps": each(steps, func(s weir.Step) document {
		doc := with(document{}, map[string]string{"mkdir": s.Mkdir, "file": s.File, "line": s.Line, "unit": s.Unit, "property": s.Property, "command": s.Command})
		if s.Persist {
			doc["persist"] = true
		}
		if p := s.Pace; p != nil {
			pace := document{"cgroup": p.Cgroup, "wbps": p.WBPS}
			if len(p.Devices) > 0 {
				pace["devices"] = p.Devices
			}
			if p.Escapes {
				pace["escapes"] = true
			}
			doc["pace"] = pace
		}
		return doc
	})}
}

func findingsIn(all []weir.Finding) []document {
	return each(all, func(f weir.Finding) document {
		return document{"number": f.Number, "code": f.Code, "severity": f.Severity, "text": f.Text,
			"evidence": each(f.Evidence, func(e weir.Evidence) document { return document{"file": e.File, "value": e.Value} }),
			"fixes": each(f.Fixes, func(x weir.Fix) document {
				return document{"text": x.Text, "lines": append([]string{}, x.Lines...)}
			})}
	})
}

func reportIn(r weir.Report) document {
	doc := document{"supposed": r.Supposed, "kernel": r.Kernel, "group": nil, "findings": findingsIn(r.Findings),
		"places": each(r.Places, func(p weir.Place) document {
			return document{"place": p.Spec, "chain": p.Chain, "devices": each(p.Devices, func(d weir.Device) document {
				return document{"device": d.Node, "number": d.Number, "limit": ratesIn(d.Limit)}
			})}
		}),
		"matrix": each(r.Matrix, func(c weir.Cell) document {
			return document{"place": c.Place, "path": c.Path, "read": c.Read, "expected": c.Expected, "mechanism": c.Mechanism, "findings": append([]int{}, c.Findings...)}
		})}
	if g := r.Group; g != nil {
		doc["group"] = document{"cgroup": g.Cgroup, "cgroup_version": g.CgroupVersion, "owner": ownerIn(g.Owner), "processes": r.Processes}
	}
	return with(doc, map[string]string{"target": r.Target})
}

func rateIn(r weir.Rate) document { return document{"rate": r.Mean, "low": r.Low, "high": r.High} }

func proofIn(p weir.Proof) document {
	return document{"target": p.Target, "cgroup": p.Cgroup, "cgroup_version": p.CgroupVersion, "kernel": p.Kernel, "observed": p.Observed,
		"verdict": p.Verdict, "findings": findingsIn(p.Findings), "rows": each(p.Rows, func(r weir.Row) document {
			direction, unit := "write", "bytes"
			if r.Read {
				direction = "read"
			}
			if r.Ops {
				unit = "operations"
			}
			doc := document{"device": r.Device, "number": r.Number, "name": r.Name, "path": r.Path, "direction": direction, "unit": unit, "limit": r.Limit,
				"window_seconds": r.Window.Seconds(), "p50_seconds": r.P50.Seconds(), "p99_seconds": r.P99.Seconds(), "max_seconds": r.Max.Seconds(),
				"writer": rateIn(r.Writer), "cgroup": rateIn(r.Charged), "disk": rateIn(r.Disk), "verdict": r.Verdict, "warnings": append([]string{}, r.Warnings...), "findings": append([]int{}, r.Findings...)}
			return with(doc, map[string]string{"reason": r.Reason, "why": r.Why})
		})}
}

// only removes from a document what the library does not have, or has in another form: keys that
// own has not, at the top and in the rows of a proof.
func (d document) only(own document) {
	for key := range d {
		if _, has := own[key]; !has {
			delete(d, key)
		}
	}
	rows, _ := d["rows"].([]any)
	ownRows, _ := own["rows"].([]any)
	for i := range min(len(rows), len(ownRows)) {
		document(rows[i].(map[string]any)).only(ownRows[i].(map[string]any))
	}
}

// decoded is a value as a reader of JSON has it.
func decoded(t *testing.T, value any) (doc document) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
