import { expect } from 'chai';
import { asObject, type JsonObject } from '../../../core/base/json-values';
import { MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import { seal } from '../../../core/protocols/seal';
import { callOf, writtenCall } from '../../support/golden';

describe('the dialect responses', () => {
  it('sends the thinking of a Messages model back in the next call, with its signature', () => {
    const content = [
      { type: 'thinking', thinking: 'Look first.', signature: 'sig-1' },
      { type: 'redacted_thinking', data: 'hidden' },
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: 'toolu_1', name: 'crm__get', input: { id: 7 } },
    ];
    const tools = [{ type: 'namespace', name: 'crm', description: '', tools: [{ type: 'function', name: 'get' }] }];
    const read = MESSAGES.openReader().body({ type: 'message', role: 'assistant', content, stop_reason: 'tool_use' });
    const sealed = {
      ...writtenCall({ tools }),
      seal: (value: string) => seal({ upstream: 'up-1', dialect: 'messages', value }),
    };
    const output = RESPONSES.openWriter(sealed).body(read)['output'] as readonly JsonObject[];
    expect(output.at(-1)).to.include({ type: 'function_call', call_id: 'toolu_1', namespace: 'crm', name: 'get' });
    const input = [
      { role: 'user', content: 'Hi' },
      ...output,
      { type: 'function_call_output', call_id: 'toolu_1', output: 'Ann' },
    ];
    const next = RESPONSES.readRequest({ input, tools, reasoning: { effort: 'high' } });
    const said = (upstream: string) => {
      const { messages } = MESSAGES.writeRequest(callOf(next, { upstream, reasoning: 'effort' }));
      return (messages as readonly JsonObject[])[1];
    };
    expect(said('up-1')).to.deep.equal({ role: 'assistant', content });
    expect(said('up-2')).to.deep.equal({ role: 'assistant', content: content.slice(2) });
  });

  it("converts an upstream's error to the form of Responses clients", () => {
    const error = { message: 'Slow down.', type: 'overloaded_error', code: 'rate_limit_exceeded' };
    expect(RESPONSES.writeError(error, 429, 'req-1')).to.deep.equal({
      request_id: 'req-1',
      error: { message: 'Slow down.', type: 'rate_limit_error', code: 'rate_limit_exceeded', param: null },
    });
    const typeAt = (status: number) => asObject(RESPONSES.writeError(error, status, 'req-1')['error'])?.['type'];
    expect([400, 401, 403, 404, 413, 500, 529].map(typeAt)).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'permission_error',
      'not_found_error',
      'invalid_request_error',
      'server_error',
      'server_error',
    ]);
  });
});
