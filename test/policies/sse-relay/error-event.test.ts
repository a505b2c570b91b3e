import { expect } from 'chai';
import { ERRORS, type ErrorCode, fail } from '../../../core/base/errors';
import { brokenOff, errorEvent } from '../../../policies/sse-relay/error-event';
import type { AnsweredCall } from '../../../policies/sse-relay/headers';

const VENDOR_TYPES: Partial<Record<ErrorCode, string>> = {
  ALL_PROVIDERS_FAILED: 'api_error',
  UPSTREAM_TIMEOUT: 'timeout_error',
  DRAINING: 'overloaded_error',
  KEY_RATE_LIMITED: 'rate_limit_error',
};

function dataOf(event: Buffer): { error: Record<string, unknown>; request_id?: string } {
  return JSON.parse(/^data: (.*)$/m.exec(event.toString())?.[1] ?? '');
}

describe('the error event of a stream', () => {
  for (const [code, type] of Object.entries(VENDOR_TYPES) as [ErrorCode, string][]) {
    it(`has for ${code} the type ${type} in a Messages stream, and the code beside the type`, () => {
      const event = errorEvent('messages', fail(code), 'req_1');
      expect(event.toString()).to.match(/^event: error\ndata: .*\n\n$/);
      expect(dataOf(event)).to.include({ type: 'error', request_id: 'req_1' });
      expect(dataOf(event).error).to.include({ type, code, message: ERRORS[code].summary });
    });

    it(`has for ${code} the type from the error catalogue in a Chat stream`, () => {
      const event = errorEvent('chat', fail(code), 'req_1');
      expect(dataOf(event)).to.have.all.keys('error');
      expect(dataOf(event).error).to.include({ type: ERRORS[code].type, code });
    });
  }

  it('never has the type server_error in a Messages stream, whatever the cause', () => {
    for (const code of Object.keys(ERRORS) as ErrorCode[])
      expect(dataOf(errorEvent('messages', fail(code), 'req_1')).error['type'], code).not.to.equal('server_error');
  });

  it("suggests a retry of an interrupted answer in the vendors' words, after which agents retry automatically", () => {
    for (const protocol of ['messages', 'chat'] as const) {
      const event = brokenOff({ protocol, id: 'req_1' } as AnsweredCall, undefined, {
        first: undefined,
        last: undefined,
      });
      expect(dataOf(event).error['message']).to.match(/retry your request/);
    }
  });
});
