package planfile

// directive is how many marks a directive of YAML counts as. Plans have no use for one, and the parser compares each with
// all before it.
const directive = 1000

// Marks is how much a text has of what makes YAML's parser keep something: a node has one mark at least, or three nodes
// have one, and so has a comment. A node takes 160 bytes, so that a text of a megabyte can take a hundred. What is within
// quotes counts too.
func Marks(text []byte) (n int) {
	begins := true // of a line
	for i, c := range text {
		switch c {
		case ',', ':', '?', '[', '{', '#':
			n++
		case '-':
			if i+1 == len(text) || text[i+1] <= ' ' || text[i+1] > '~' { // else it is in a word
				n++
			}
		case '%':
			if begins {
				n += directive
			}
		}
		begins = c == '\n' || c == '\r' || c > '~' // YAML has ends of lines beyond ASCII
	}
	return n
}
