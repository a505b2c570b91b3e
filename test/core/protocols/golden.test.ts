import { expect } from 'chai';
import { CHAT } from '../../../core/protocols/chat';
import { MESSAGES } from '../../../core/protocols/messages';
import { RESPONSES } from '../../../core/protocols/responses';
import { requests } from '../../fuzz/targets/requests';
import { streams } from '../../fuzz/targets/streams';
import { outcomeOf, pairsOf, readPair, type Subject } from '../../support/golden';
import { seeded } from '../../support/random';

const SUBJECTS: Readonly<Record<string, Subject>> = { messages: MESSAGES, chat: CHAT, responses: RESPONSES };

for (const [dialect, subject] of Object.entries(SUBJECTS)) {
  describe(`golden pairs of the dialect ${dialect}`, () => {
    for (const { kind, name, path } of pairsOf(dialect))
      it(`${kind} ${name}: ${readPair(path).shows}`, () => {
        const { actual, expected } = outcomeOf(subject, kind, path);
        expect(actual).to.deep.equal(expected);
      });
  });
}

describe('translation', () => {
  for (const target of [requests, streams])
    it(`keeps the meaning of ${target.summary}, as the fuzzer draws them`, async () => {
      for (let seed = 1; seed <= 10; seed += 1) await target.run(undefined as never, seeded(seed));
    });
});
