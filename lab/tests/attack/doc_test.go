// Package attack_test has a user without rights try to stop weir, to have it change what is
// not the user's, or to have it print what it must not. Each attack runs in a process of that
// user, which is told when to begin and says when it is under way; weir runs as root then.
// docs/security.md lists them.
package attack_test
