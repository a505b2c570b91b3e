import assert from 'node:assert/strict';
import { StartFailure } from '../../../core/base/start-failure';
import { refuseShortToken } from '../../../core/operators/operators';

describe('ADMIN_TOKEN', () => {
  it('may be short only if the admin listener is reachable from this machine alone', () => {
    for (const host of ['127.0.0.1', '::1', 'localhost']) refuseShortToken('x', host);
    for (const host of ['0.0.0.0', '::', '', '10.0.0.1', 'gateway.internal']) {
      assert.throws(() => refuseShortToken('x'.repeat(23), host), StartFailure);
      refuseShortToken('x'.repeat(24), host);
      refuseShortToken(undefined, host);
    }
  });
});
