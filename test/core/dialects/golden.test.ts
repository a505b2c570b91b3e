import { expect } from 'chai';
import { CHAT } from '../../../core/dialects/chat';
import { MESSAGES } from '../../../core/dialects/messages';
import { RESPONSES } from '../../../core/dialects/responses';
import { outcomeOf, pairsOf, readPair, type Subject } from '../../support/golden';

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
