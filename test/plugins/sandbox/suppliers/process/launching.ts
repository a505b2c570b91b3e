import { Launcher } from '../../../../../plugins/sandbox/suppliers/process/launcher';

/** Starts a program and prints its process id. */
void new Launcher()
  .start({ argv: ['/bin/sleep', '1014'], cwd: '/', env: {}, streams: 3 })
  .then(({ pid }) => process.send?.(pid));
