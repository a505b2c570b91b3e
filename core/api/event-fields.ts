import { type Filters, integerReader, PAGE_READERS, wordReader } from '../http/query';
import { object, orNull, pageShape, shape } from '../http/shape';

/** The parameters and answers of requests for events, in every API. */

export const FEED_READERS = {
  after: integerReader(0, Number.MAX_SAFE_INTEGER, {
    default: 0,
    description: 'The `sequence` of the last event that you have; 0 begins with the oldest.',
  }),
  order: wordReader(['oldest', 'newest'], { default: 'oldest', description: 'Which events come first.' }),
  cursor: integerReader(0, Number.MAX_SAFE_INTEGER, { description: '`nextCursor` of the answer before.' }),
  limit: PAGE_READERS.limit,
};

/** Returns the part of a feed that the parameters request. */
export function feedRequestOf({ after = 0, order = 'oldest', cursor, limit = 100 }: Filters<typeof FEED_READERS>) {
  return order === 'oldest' ? { after: cursor ?? after, order, limit } : { after, before: cursor, order, limit };
}

/** The result of `showFeedEvent` in the OpenAPI document. */
const EVENT = object({
  id: shape.uuid,
  sequence: {
    ...shape.integer,
    description: "The number in this feed, without gaps: an account's feed and the operators' each have their own.",
  },
  type: { ...shape.text, example: 'budget.reached' },
  timestamp: shape.time,
  accountId: orNull(shape.uuid),
  data: { type: 'object', description: 'What happened; docs/alerts.md has the members of each type.' },
});

export const FEED = {
  200: { description: 'The next events, oldest first unless `order` says otherwise.', schema: pageShape(EVENT) },
} as const;
