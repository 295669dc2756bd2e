package api

// list makes a list of a document, which is [] and not null where there is nothing.
func list[T, U any](all []T, of func(T) U) []U {
	made := []U{}
	for _, one := range all {
		made = append(made, of(one))
	}
	return made
}
