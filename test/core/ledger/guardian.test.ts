import assert from 'node:assert/strict';
import { pino } from 'pino';
import { startGuardian } from '../../../core/ledger/guardian';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { instead } from '../../store/ledger/ledger-fixture';
import { until } from '../../support/until';

describe('the log of a ledger that cannot be maintained', () => {
  it('has each reason once, even if another reason came between', async () => {
    const reasons = ['the connection is closed', 'the connection is closed', 'the move of slot 93 was broken off'];
    let looks = 0;
    const ledger = instead(new MemoryLedger(), {
      isReady: () => Promise.reject(new Error(reasons[looks++] ?? reasons.at(-1))),
    });
    const told: string[] = [];
    const log = pino({}, { write: (line: string) => told.push(String(JSON.parse(line).reason)) });
    const guardian = startGuardian({ ledger, log, database: undefined as never, everyMs: 1 });
    await until('it has looked some times', () => looks > 5);
    await guardian.stop();
    assert.deepEqual(told, ['Error: the connection is closed', 'Error: the move of slot 93 was broken off']);
  });
});
