import { expect } from 'chai';
import { unpricedWarnings } from '../../../core/configuration/configuration';
import type { PipelineSettings } from '../../../core/configuration/pipelines';
import modelRequest from '../../../policies/model-request';
import { sampleModel, samplePrice, sampleUpstream } from '../../support/catalog-samples';

const PRICED = new Map([
  ['webSearch', 0n],
  ['webFetch', 0n],
]);
const plain = { price: samplePrice(1n, 2n) };
const priced = { price: { ...plain.price, pieces: PRICED } };

/** A pipeline whose calls are treated in this way. */
function pipeline(unpricedTools: string): Pick<PipelineSettings, 'steps'> {
  return { steps: [{ policy: modelRequest, settings: { unpricedTools } }] };
}

describe('The check of a configuration', () => {
  const models = [sampleModel('some', plain), sampleModel('all', priced)];
  const warned = (more: object, pipelines = [pipeline('forward')]) =>
    unpricedWarnings([sampleUpstream('acme', models, more)], pipelines).map(({ message }) => message);

  it('warns once for each upstream, and names its models that lack prices for tools of clients', () => {
    const [message, ...others] = warned({});
    expect(others).to.deep.equal([]);
    expect(message).to.match(
      /^upstream "acme" has models without a price for tools .*: some \(webSearch, webFetch\)\. Add/,
    );
  });

  it('does not warn if the operator has configured unpriced tools, or if the upstream is disabled', () => {
    expect(warned({ unpricedTools: 'forward' })).to.deep.equal([]);
    expect(warned({ unpricedTools: 'refuse' })).to.deep.equal([]);
    expect(warned({ disabled: 'ACME_KEY is not set' })).to.deep.equal([]);
    expect(warned({}, [pipeline('refuse')])).to.deep.equal([]);
    expect(warned({}, [pipeline('refuse'), pipeline('forward')])).to.have.length(1);
  });
});
