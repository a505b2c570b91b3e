import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { temporaryFolder } from '../support/configuration-folder';
import { findProgram } from '../support/programs';
import { textOf } from '../support/sources';

const run = promisify(execFile);
const UNIT = 'deploy/systemd/tollgate.service';
/** The highest exposure in tenths. systemd calls values up to 2.0 safe. */
const MAX_EXPOSED = '15';

describe(UNIT, () => {
  const analyze = (...args: readonly string[]) => run(findProgram('systemd-analyze'), args);

  it('is accepted by systemd-analyze verify, and its security exposure is below the threshold', async () => {
    const unit = join(temporaryFolder({}), 'tollgate.service');
    // Uses the Node of this machine instead of the host's.
    await writeFile(unit, textOf(UNIT).replace('/usr/bin/node', process.execPath));
    assert.equal((await analyze('verify', unit)).stderr, '');
    await analyze('security', '--offline=true', `--threshold=${MAX_EXPOSED}`, unit);
  });

  it('lets calls finish before systemd kills the gateway, and does not restart it after a configuration error', () => {
    const settings = new Map(
      textOf(UNIT)
        .split('\n')
        .flatMap((line) => (/^(\w+)=(.*)$/.exec(line) ? [line.split(/=(.*)/, 2) as [string, string]] : [])),
    );
    assert.ok(Number(settings.get('TimeoutStopSec')) >= 35);
    assert.equal(settings.get('RestartPreventExitStatus'), '78');
    assert.equal(settings.get('KillMode'), 'mixed');
  });
});
