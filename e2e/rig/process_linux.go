package rig

import (
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Spawn starts a process that dies with the tests, however they end. The signal
// follows the thread that started it, which therefore stays. exited is closed once
// the process has ended, and its state can be read from cmd.
func Spawn(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// A command of the agent may hold the pipes of its server open for a moment longer.
	cmd.WaitDelay = time.Second
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // its state is read from cmd
		}
		close(done)
	}()
	return done, <-started
}
