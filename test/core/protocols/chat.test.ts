import { expect } from 'chai';
import type { AnswerEvent } from '../../../core/catalog/answer';
import { CHAT } from '../../../core/protocols/client-dialects';

describe('the dialect chat', () => {
  it("fails an attempt with a clear error if the upstream's answer contradicts itself", () => {
    const call = (index: number, rest: object) => chunk({ tool_calls: [{ index, ...rest }] });
    const begin = (index: number, id: string) => call(index, { id, function: { name: 'f', arguments: '{}' } });
    const more = call(0, { function: { arguments: '{"a":1}' } });
    expect(() => readStream(['[1]'])).to.throw('is not a JSON object');
    expect(() => readStream([begin(0, 'a'), begin(1, 'b'), more])).to.throw('continued the input of a tool call after');
    expect(() => readStream([call(0, { id: 'a', function: { arguments: '{}' } }), chunk({}, 'stop')])).to.throw(
      "a tool call in the upstream's answer has no name",
    );
    expect(() => readStream([chunk({ tool_calls: [{ function: { arguments: '{' } }] })])).to.throw('without the call');
    expect(() => CHAT.openReader().body([])).to.throw('the answer is no JSON object');
  });

  it("converts vendors' errors to types that Chat clients know, and keeps the vendor's message", () => {
    const told = (status: number) => CHAT.writeError({ message: 'No.', type: 'overloaded_error' }, status, 'req-1');
    expect(told(529)).to.deep.equal({
      error: { message: 'No.', type: 'server_error', param: null, code: 'server_is_overloaded' },
      request_id: 'req-1',
    });
    const typeOf = (status: number) => (told(status)['error'] as { readonly type: string }).type;
    expect([400, 401, 403, 404, 429, 500].map(typeOf)).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'permission_error',
      'not_found_error',
      'rate_limit_error',
      'server_error',
    ]);
  });
});

function chunk(delta: object, finish: string | null = null): string {
  return JSON.stringify({ id: 'chatcmpl-1', choices: [{ index: 0, delta, finish_reason: finish }] });
}

function readStream(chunks: readonly string[]): readonly AnswerEvent[] {
  const reader = CHAT.openReader();
  return [...chunks.flatMap((data) => reader.event({ name: undefined, data })), ...reader.end()];
}
