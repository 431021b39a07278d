// Package seed fills a data folder with sessions in every state that people can
// see, for the eye and for tests of pages.
//
//	r, err := seed.Fill(ctx, seed.Options{Dir: dir, Binary: binary})
//	… exec.Command(binary, append(r.Serve(), "--addr", "127.0.0.1:8080")...)
//	… sign in with r.Email and r.Password, or use r.Token
//	… open "/sessions/" + r.ID("waiting_long")
//
// Nothing is written behind the product's back. Sessions are made over HTTP with
// a server of the real binary, which is killed in the midst of some and started
// again. What a single server can't leave behind (a claim of another worker)
// goes through the doors of the store, as that worker would.
//
// # What holds how long
//
// A server on the folder must be started with the flags of Result.Serve: one
// place, which the session running takes, so that queued stays queued. It may be
// killed with -9 and started again twice; a third loss would block that session
// (REC-11), and a graceful stop interrupts it. Its steps take 25 minutes each.
// The claims of the other worker, which make stopping, unconfirmed and
// running_elsewhere, end after 20 hours, and the retry begins then. A test that
// changes anything takes a copy of the folder first.
package seed
