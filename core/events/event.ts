/** The kinds of events that an account's feed and webhooks have. Operators have them too, of all accounts. */
export const ACCOUNT_EVENTS = [
  'balance.low',
  'budget.reached',
  'account.frozen',
  'key.expires_soon',
  'sandbox.state',
  'webhook.disabled',
] as const;

/** The kinds of events that only operators have. Each action of a rollout is one more, such as `rollout.advance`. */
export const OPERATOR_EVENTS = [
  'upstream.ejected',
  'upstream.returned',
  'ledger.contradiction',
  'invoice.differs',
  'excess.account',
  'outbox.behind',
  'model.retires',
  'region.differs',
  'price.stopped',
] as const;

export type AccountEventType = (typeof ACCOUNT_EVENTS)[number];

type EventType = AccountEventType | (typeof OPERATOR_EVENTS)[number] | `rollout.${string}`;

/** An event that is about to be written. */
export interface NewEvent {
  readonly type: EventType;
  /** The account whose feed has the event; undefined for an event of operators only. */
  readonly accountId?: string | undefined;
  /** Names the fact within its type: its subject and when it began. A second event with the same name is not written. */
  readonly once: string;
  readonly data: object;
  /** Until when the event must exist, so that its fact is not reported again, if that is longer than events are kept; a time of Postgres. */
  readonly keptUntil?: string | undefined;
}

/** The row of an event that a feed or a webhook shows. */
export interface EventRow {
  readonly id: string;
  readonly account_id: string | null;
  /** Its number in its account's feed; null for an event of operators only. */
  readonly sequence: bigint | null;
  readonly feed_sequence: bigint;
  readonly type: string;
  readonly data: object;
  readonly created_at: Date;
}

/** An event as feeds and webhooks show it. */
export interface ShownEvent {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  readonly timestamp: string;
  readonly accountId: string | null;
  readonly data: object;
}

/** Shows an event in the feed whose number of it is `sequence`. */
export function showFeedEvent(row: Omit<EventRow, 'sequence' | 'feed_sequence'>, sequence: bigint | null): ShownEvent {
  return {
    id: row.id,
    sequence: Number(sequence),
    type: row.type,
    timestamp: row.created_at.toISOString(),
    accountId: row.account_id,
    data: row.data,
  };
}
