import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { builtServer } from '../../support/shared';
import { until } from '../../support/until';

/** A program that runs `work` as soon as it serves clients, after a second in which the watchdog's thread starts. */
const PROGRAM = (dist: string, work: string) => `
const { startWatchdog, within, ownerNumber } = require('${dist}/core/base/watchdog.js');
const { OpenRequests } = require('${dist}/core/base/shutdown.js');
const { log } = require('${dist}/core/base/log.js');
const watchdog = startWatchdog(log);
const block = (owner, ms) => within(ownerNumber(owner), () => { for (const end = Date.now() + ms; Date.now() < end; ); });
setTimeout(() => {
  watchdog.serving(new OpenRequests());
  ${work}
}, 1_000);
setInterval(() => {}, 1_000);
`;

describe('the watchdog', () => {
  /** Returns the log until it reports the end of the block. */
  async function logOf(work: string): Promise<string> {
    const program = spawn(process.execPath, ['-e', PROGRAM(dirname(await builtServer()), work)]);
    let output = '';
    program.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    try {
      await until('the end of the block is logged', () => output.includes('the event loop was blocked'));
    } finally {
      program.kill('SIGKILL');
    }
    return output;
  }

  it('reports a blocked event loop, even if the block begins as soon as the process serves clients', async () => {
    expect(await logOf("block('plugin blocking', 2_000);")).to.match(
      /"by":"plugin blocking".*"msg":"the event loop was blocked"/,
    );
  });

  it('reports the plugin, policy or adapter whose code blocked the event loop longest, even if other code runs afterwards', async () => {
    const output = await logOf("block('policy blocking', 2_000); block('policy innocent', 800);");
    expect(output).to.match(/"by":"policy blocking".*"msg":"the event loop was blocked"/);
    expect(output).not.to.include('policy innocent');
  });
});
