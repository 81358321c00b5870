package dash

// Routes are all paths beneath api/ with their verbs, so that tests cannot forget one.
func Routes() (gets, posts map[string]Verb) {
	of := func(table map[string]endpoint) map[string]Verb {
		out := map[string]Verb{}
		for path, e := range table {
			out[path] = e.verb
		}
		return out
	}
	return of(reads), of(writes)
}
