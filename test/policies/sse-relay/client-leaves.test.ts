import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Call, Counted, Ending } from '../../../core/calls/call';
import { outputTokens, totalInputTokens } from '../../../core/catalog/usage';
import { KeepAlive } from '../../../policies/sse-relay/keep-alive';
import type { SampleResponse } from '../../support/exchange';
import { FINISH, relayStream, Sent, said, USAGE } from '../../support/relayed-stream';

describe('A client that leaves a stream', () => {
  let sent: Sent;
  let response: SampleResponse;
  let endings: readonly Ending[];
  let call: Call;

  /** Relays a stream that begins with `head`; resolves when it has ended. */
  function relay(head: string, onClientAbort: 'settle' | 'drain', silentMs = 0, keepAlive?: KeepAlive): Promise<void> {
    const relayed = relayStream(sent, head, { onClientAbort, silentMs, keepAlive });
    ({ response, call, endings } = relayed);
    return relayed.done;
  }

  beforeEach(() => {
    sent = new Sent();
  });

  it('pays for what came after it left, up to the reported usage', async () => {
    const done = relay(said('1234'), 'settle');
    response.clientLeaves();
    sent.add(said('five tokens and more'), FINISH, USAGE);
    sent.end();
    await done;
    expect(endings[0]).to.include({ billing: 'actual' });
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(7);
  });

  it('pays for what was counted when the upstream sends 64 KB behind the stop reason and no usage', async () => {
    const done = relay(said('1234') + FINISH, 'settle');
    response.clientLeaves();
    sent.add(...Array.from({ length: 66 }, () => `: ${'x'.repeat(1_000)}\n\n`));
    await done;
    expect(endings[0]).to.include({ billing: 'estimated' });
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(1);
    expect(sent.isCancelled).to.equal(true);
  });

  it('pays for silence as for output that is not shown, at most up to the limit of the call', async () => {
    const done = relay(said('1234'), 'settle', 60_000);
    response.clientLeaves();
    sent.cancel();
    await done;
    expect(endings[0]).to.include({ billing: 'partial' });
    // One token is shown. A minute at 50 tokens per second would be 3,000 tokens, but the limit is 100.
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(101);
  });

  it('pays nothing for a silence in which the process did not run', async () => {
    const done = relay(said('1234'), 'settle');
    await sleep(0);
    response.clientLeaves();
    for (const untilMs = performance.now() + 1_700; performance.now() < untilMs; );
    sent.add(said('5678'));
    await sleep(0);
    sent.cancel();
    await done;
    expect(endings[0]).to.include({ billing: 'partial' });
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(2);
  });

  it('pays nothing when the process ends before the upstream has', async () => {
    const done = relay(said('1234'), 'drain');
    response.clientLeaves();
    call.cutOff();
    await done;
    expect(endings[0]).to.deep.equal({ billing: 'released' });
  });

  it('after its end leaves nothing running', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const done = relay(said('1234'), 'drain');
    // What was given to the connection is not taken any more.
    response.end = () => response;
    sent.end();
    await done;
    const before = timers();
    response.clientLeaves();
    expect(timers()).to.equal(before);
  });

  it('after its stop reason, where streams are drained, pays what the upstream says it was', async () => {
    const done = relay(said('1234') + FINISH, 'drain');
    response.clientLeaves();
    expect(sent.isCancelled, 'the upstream is read on').to.equal(false);
    sent.add(USAGE);
    sent.end();
    await done;
    const { usage } = endings[0] as Counted;
    expect([totalInputTokens(usage), outputTokens(usage)]).to.deep.equal([10, 7]);
  });

  for (const [who, becomes] of [
    ['that is there', () => undefined],
    ['that has left', () => response.clientLeaves()],
    ['that takes nothing', () => Object.defineProperty(response, 'writableNeedDrain', { value: true })],
  ] as const) {
    it(`gets ${who === 'that is there' ? 'a' : 'no'} sign of life from a silent stream, for a client ${who}`, async () => {
      const done = relay(said('1234'), 'drain', 0, new KeepAlive(20));
      await sleep(0);
      becomes();
      const written: string[] = [];
      response.write = (chunk: Buffer) => written.push(String(chunk)) > 0;
      await sleep(100);
      expect(written.includes(': keep-alive\n\n')).to.equal(who === 'that is there');
      const before = written.length;
      sent.end();
      await done;
      await sleep(100);
      expect(written).to.have.length(before);
    });
  }
});
