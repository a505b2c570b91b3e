import { definePolicy } from '../../core/gateway/policy';
import { TokenMeter } from './token-meter';

export default definePolicy({
  contract: 'policy/1',
  name: 'token-metering',
  summary: 'What did the call use?',
  schema: { type: 'object', properties: {} },
  needs: ['request', 'candidates'],
  provides: ['meter'],
  prepare: () => (call) => ({ meter: new TokenMeter(call.request) }),
});
