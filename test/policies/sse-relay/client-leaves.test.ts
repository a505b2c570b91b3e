import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import type { Call, Counted, Ending } from '../../../core/calls/call';
import { outputTokens, totalInputTokens } from '../../../core/catalog/usage';
import { KeepAlive } from '../../../policies/sse-relay/keep-alive';
import type { SampleResponse } from '../../support/exchange';
import { FINISH, relayStream, Sent, said, USAGE } from '../../support/relayed-stream';

describe('a client that disconnects during a stream', () => {
  let sent: Sent;
  let response: SampleResponse;
  let endings: readonly Ending[];
  let call: Call;

  /** Relays a stream that begins with `head` and resolves at its end. */
  function relay(head: string, onClientAbort: 'settle' | 'drain', sinceMs = 0, keepAlive?: KeepAlive): Promise<void> {
    const relayed = relayStream(sent, head, { onClientAbort, sinceMs, keepAlive });
    ({ response, call, endings } = relayed);
    return relayed.done;
  }

  beforeEach(() => {
    sent = new Sent();
  });

  it('pays for output that arrives after the disconnect, up to the reported usage', async () => {
    const done = relay(said('1234'), 'settle');
    response.clientLeaves();
    sent.add(said('five tokens and more'), FINISH, USAGE);
    sent.end();
    await done;
    expect(endings[0]).to.include({ billing: 'actual' });
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(7);
  });

  it('pays for the counted output if the upstream sends 64 KB after the stop reason but no usage', async () => {
    const done = relay(said('1234') + FINISH, 'settle');
    response.clientLeaves();
    sent.add(...Array.from({ length: 66 }, () => `: ${'x'.repeat(1_000)}\n\n`));
    await done;
    expect(endings[0]).to.include({ billing: 'estimated' });
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(1);
    expect(sent.isCancelled).to.equal(true);
  });

  it('pays for the time since the head of the answer, at most up to the output limit of the call', async () => {
    const done = relay(said('1234'), 'settle', 60_000);
    response.clientLeaves();
    sent.cancel();
    await done;
    expect(endings[0]).to.include({ billing: 'partial' });
    // A minute at 50 tokens per second would be 3,000 tokens, but the limit is 100.
    expect(outputTokens((endings[0] as Counted).usage)).to.equal(100);
  });

  it('pays nothing if the gateway process stops before the upstream has finished', async () => {
    const done = relay(said('1234'), 'drain');
    response.clientLeaves();
    call.cutOff();
    await done;
    expect(endings[0]).to.deep.equal({ billing: 'released' });
  });

  it('leaves no timer running if it disconnects after the end of the stream', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const done = relay(said('1234'), 'drain');
    // The connection accepts no more data.
    response.end = () => response;
    sent.end();
    await done;
    const before = timers();
    response.clientLeaves();
    expect(timers()).to.equal(before);
  });

  it('pays the reported usage if it disconnects after the stop reason and the gateway reads the stream to its end', async () => {
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
    ['that is connected', () => undefined],
    ['that has disconnected', () => response.clientLeaves()],
    ['that reads nothing', () => Object.defineProperty(response, 'writableNeedDrain', { value: true })],
  ] as const) {
    it(`is compared with a client ${who}, which gets ${who === 'that is connected' ? 'a' : 'no'} keep-alive comment during a silent stream`, async () => {
      const done = relay(said('1234'), 'drain', 0, new KeepAlive(20));
      await sleep(0);
      becomes();
      const written: string[] = [];
      response.write = (chunk: Buffer) => written.push(String(chunk)) > 0;
      await sleep(100);
      expect(written.includes(': keep-alive\n\n')).to.equal(who === 'that is connected');
      const before = written.length;
      sent.end();
      await done;
      await sleep(100);
      expect(written).to.have.length(before);
    });
  }
});
