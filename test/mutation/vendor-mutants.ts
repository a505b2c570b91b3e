import type { SourceMutant } from './mutate-sources';

const ADVERSARY = 'test/long/adversarial-vendor.test.ts';
const CLAMP = 'test/gateway/clamp.test.ts';

export const VENDOR_MUTANTS: readonly SourceMutant[] = [
  {
    name: 'three bytes count as a token',
    file: 'policies/reserve-settle/hold.ts',
    from: 'Math.ceil(text * tokenizerFactor)',
    to: 'Math.ceil((text * tokenizerFactor) / 3)',
    story: 'test/gateway/vendor-rows.test.ts',
  },
  {
    name: 'an outside member is forgotten',
    file: 'policies/model-request/weigh-members.ts',
    from: 'weighed.heldMembers.push(name);',
    to: 'void name;',
    story: ADVERSARY,
  },
  {
    name: 'the tier that a call asks for is ignored',
    file: 'core/catalog/price.ts',
    from: 'return asked === undefined ? price.possible : cardsWith(price, asked);',
    to: 'return asked === undefined || asked.tier !== undefined ? price.possible : cardsWith(price, asked);',
    story: ADVERSARY,
  },
  {
    name: 'a clamped call is told one token more than is held',
    file: 'policies/reserve-settle/hold.ts',
    from: 'return limitedTo(most, request);',
    to: 'return limitedTo(most + 1, request);',
    story: CLAMP,
  },
  {
    name: 'a further pass is dropped from the hold',
    file: 'policies/reserve-settle/hold.ts',
    from: 'return ofBody + furtherPassesOf(reading, model) * context;',
    to: 'return ofBody + Math.min(0, furtherPassesOf(reading, model)) * context;',
    story: ADVERSARY,
  },
  {
    name: 'a further pass is dropped from the charge',
    file: 'core/catalog/price.ts',
    from: 'for (const pass of passes) addCostOfPass',
    to: 'for (const pass of passes.slice(0, 1)) addCostOfPass',
    story: ADVERSARY,
  },
  {
    name: "the searches' passes of a Responses call are forgotten",
    file: 'core/protocols/cost-factors.ts',
    from: 'return furtherPasses + further + shared + Math.min(uses, PASSES_OF_A_LOOP);',
    to: 'return furtherPasses + further + 0 * shared + Math.min(uses, PASSES_OF_A_LOOP);',
    story: ADVERSARY,
  },
  {
    name: 'a vendor is told more searches than are held',
    file: 'core/wire/ask-upstream.ts',
    from: 'const uses = piecesOf(tool, model);',
    to: 'const uses = piecesOf(tool, model) + 1;',
    story: ADVERSARY,
  },
  {
    name: 'the limit that a compaction names is believed',
    file: 'policies/model-request/read-request.ts',
    from: 'maxOutputTokens: operation === undefined ? fields.maxOutputTokens : undefined,',
    to: 'maxOutputTokens: fields.maxOutputTokens,',
    story: ADVERSARY,
  },
  {
    name: 'an embeddings call is held for one of its inputs',
    file: 'policies/reserve-settle/hold.ts',
    from: 'const context = model.context * inputs;',
    to: 'const context = model.context * Math.min(inputs, 1);',
    story: ADVERSARY,
  },
];
