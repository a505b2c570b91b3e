import { expect } from 'chai';
import { findAdapter, registerAdapter } from '../../../core/catalog/adapters';
import type { Candidate } from '../../../core/catalog/catalog';
import { roughPrice } from '../../../core/catalog/price';
import { defineAdapter } from '../../../core/catalog/upstream';
import { Translation } from '../../../core/protocols/translation';
import { sampleModel, sampleUpstream } from '../../support/catalog-samples';
import { callOf } from '../../support/golden';

const ODD = defineAdapter({
  contract: 'upstream/1',
  name: 'odd',
  dialect: 'odd',
  schema: { type: 'object', properties: {} },
  request: () => ({ path: '/', body: {} }),
  authorize: () => ({}),
  judge: () => 'next',
  answer: () => ({
    event: () => [{ is: 'error', error: { message: 'Too hot.' } }],
    body: () => [],
    end: () => [],
  }),
});

describe('a translated error event of an upstream', () => {
  it('is passed whole to `judge`, and the client receives only the parsed message', () => {
    const forget = registerAdapter(ODD);
    const adapter = findAdapter('odd');
    forget();
    if (adapter === undefined) throw new Error('it was not registered');
    const model = sampleModel('m');
    const upstream = sampleUpstream('up-1', [model], { adapters: [adapter] });
    const candidate: Candidate = { upstream, model, adapter, rough: roughPrice(model.price), dialect: 'own' };
    const asked = callOf({ instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] }, {});
    const translation = new Translation(candidate, { requestId: 'req', protocol: 'chat', asked, request: {} });
    const { note, written } = translation.event({ name: undefined, data: '{"oops":"Too hot.","retry":true}' });
    expect(note.error).to.deep.equal({ body: { oops: 'Too hot.', retry: true } });
    expect(written.map(({ data }) => data).join('')).to.include('Too hot.');
  });
});
