import { expect } from 'chai';
import { type AgentTask, installAgents, runClaudeCode } from '../support/agents';
import { type Configured, PRICE, startGateway, type TestGateway } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { until } from '../support/until';
import { messagesAsAsked, messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

/** A model name that the agent knows, so that it sends the same requests as to its vendor's models. */
const MODEL = 'claude-sonnet-5-5';
const FUNDS_USD = '100.00000000';
const FOREIGN_KEY = 'sk-ant-api03-of-another-service';

describe('Claude Code, the real program', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async function () {
    this.timeout(300_000);
    await installAgents();
    upstream = await startUpstream();
    const models = { [MODEL]: { context: 1_000_000, maxOutput: 128_000 } };
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url, models } }, configure: narrowRolesOfCost });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(async () => {
    upstream.reset();
    ({ key } = await gateway.newCustomer('100'));
  });

  /** Lets calls below `/cost` go to an older dialect without system messages. */
  function narrowRolesOfCost(config: Configured): void {
    setPolicy(config, 'model-request', { roles: ['user', 'assistant'] }, 'cost');
  }

  const agent = (prompt: string, { env = {}, ...more }: Partial<AgentTask> = {}) =>
    runClaudeCode({
      baseUrl: gateway.url,
      prompt,
      env: { ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: MODEL, ...env },
      ...more,
    });

  /** Asserts that the account has paid the reported usage of these answers, and nothing else. */
  async function expectBill(...reported: readonly { readonly input: number; readonly output: number }[]) {
    const usd = reported.reduce((sum, { input, output }) => sum + input * PRICE.input + output * PRICE.output, 0) / 1e6;
    const balance = await until('nothing is held any more', async () => {
      const now = await gateway.balance(key);
      return now.heldUsd === '0.00000000' ? now : undefined;
    });
    expect((Number(FUNDS_USD) - Number(balance.balanceUsd)).toFixed(8)).to.equal(usd.toFixed(8));
    expect(balance.key['spentUsd']).to.equal(usd.toFixed(8));
  }

  async function rolesOf(call: number): Promise<readonly string[]> {
    const { messages } = (await upstream.call(call)).json as { messages: readonly { role: string }[] };
    return messages.map(({ role }) => role);
  }

  it('answers a prompt when it sends its system message as the second message', async () => {
    const usage = { input: 1_200, output: 7 };
    upstream.next(messagesAsAsked({ texts: ['Hello ', 'there.'], usage }));
    const report = await agent('say hello');
    expect(report).to.include({ subtype: 'success', is_error: false, result: 'Hello there.' });
    expect(report.usage).to.include({ input_tokens: 1_200, output_tokens: 7 });
    expect(await rolesOf(1)).to.deep.equal(['user', 'system']);
    await expectBill(usage);
  });

  it('runs a tool and sends its result back', async () => {
    const [asking, answering] = [
      { input: 1_000, output: 40 },
      { input: 1_300, output: 12 },
    ];
    const input = { command: 'cat note.txt', description: 'Show the note' };
    upstream.next(
      messagesAsAsked({ text: 'I will look.', toolCalls: [{ name: 'Bash', input, id: 'toolu_1' }], usage: asking }),
      messagesAsAsked({ text: 'It says: tolls are due.', usage: answering }),
    );
    const report = await agent('what does note.txt say?', {
      args: ['--allowedTools', 'Bash(cat:*)'],
      files: { 'note.txt': 'tolls are due' },
    });
    expect(report).to.include({ subtype: 'success', result: 'It says: tolls are due.', num_turns: 2 });
    expect(JSON.stringify(upstream.calls[1]?.json)).to.match(
      /"tool_use_id":"toolu_1","type":"tool_result","content":"tolls are due"/,
    );
    await expectBill(asking, answering);
  });

  it('retries automatically if the upstream disconnects between two content blocks', async () => {
    const usage = { input: 1_500, output: 9 };
    const toolCalls = [{ name: 'Bash', input: { command: 'cat note.txt' } }];
    upstream.next(
      // The text is complete; the tool call has only begun.
      messagesStream({ texts: ['I will ', 'look.'], toolCalls, cutAfter: 7, cut: 'reset' }),
      messagesAsAsked({ text: 'The answer is 42.', usage }),
    );
    const report = await agent('what is the answer?');
    expect(report).to.include({ subtype: 'success', is_error: false, result: 'The answer is 42.' });
    expect(upstream.calls).to.have.length(2);
    await expectBill(usage);
  });

  it("works if `ANTHROPIC_API_KEY` has another service's credential beside the gateway's key", async () => {
    const usage = { input: 1_100, output: 3 };
    upstream.next(messagesAsAsked({ text: 'Hello.', usage }));
    const report = await agent('say hello', { env: { ANTHROPIC_API_KEY: FOREIGN_KEY } });
    expect(report).to.include({ subtype: 'success', result: 'Hello.' });
    await expectBill(usage);
  });

  it('sends a request again without the system role after the setting `roles` made the gateway refuse that role', async () => {
    const usage = { input: 1_250, output: 4 };
    upstream.next(messagesAsAsked({ text: 'Hello.', usage }));
    const report = await agent('say hello', { baseUrl: `${gateway.url}/cost` });
    expect(report).to.include({ subtype: 'success', result: 'Hello.' });
    expect(await rolesOf(1)).not.to.include('system');
    await expectBill(usage);
  });
});
