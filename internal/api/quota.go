package api

import "github.com/weir-io/weir/internal/act/quota"

// A Quota is the document of weir quota.
type Quota struct {
	Schema
	Quotas []quota.Status `json:"quotas"`
	Marked *quota.Marked  `json:"marked,omitempty"` // by set, if it went through the tree
}

// QuotaOf makes the document of some quotas.
func QuotaOf(all ...quota.Status) Quota {
	return Quota{Schema: SchemaOf("quota"), Quotas: append([]quota.Status{}, all...)}
}

// QuotaSetOf makes the document of one that was set, and of the files that were marked for it.
func QuotaSetOf(st quota.Status, marked quota.Marked) Quota {
	doc := QuotaOf(st)
	if marked.Files > 0 {
		doc.Marked = &marked
	}
	return doc
}
