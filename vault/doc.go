// Package vault keeps the credentials that Holdfast gives to agents: sealed in
// the journal's database, by a key that isn't in it (OWN-3).
//
// # Model
//
//   - Key seals and opens one value. What it was sealed for (owner, agent, name,
//     row) must be told again to open it: a row that is put in another's place
//     doesn't open.
//   - Source says where the key is: a file, or the environment. The file is made
//     when the first credential is stored, not before.
//   - Keeper joins a key with a store. It checks what is to be stored, seals it,
//     opens what agents are to get, and tells the store's cleaner each value before
//     anybody gets it.
//
// # Invariants
//
//   - A value is in the journal's cleaner before it is stored, and before a process
//     begins that gets it; on a server that starts, before it does anything.
//   - No error, log or type that prints itself holds a value or a key.
//   - A journal knows one key. Another one is refused, never added.
package vault
