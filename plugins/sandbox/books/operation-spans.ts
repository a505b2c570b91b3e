import type { IncomingHttpHeaders } from 'node:http';
import type { Span, SpanEnd, SpanFacts, Tracing } from '../../../core/traces/tracing';
import type { Operation } from '../life/sandbox';
import type { Books } from './books';

type Begun = Pick<Operation, 'id' | 'sandboxId' | 'type'>;
type Ended = Pick<Operation, 'status'> & { readonly error?: Operation['error'] | undefined };

/** Records spans of the operations in sandboxes: their kind and outcome, but never commands, paths or contents. */
export class OperationSpans {
  /** The spans that have not ended, by operation id. */
  readonly #open = new Map<string, Span>();

  constructor(private readonly tracing: Tracing | undefined) {}

  /** Begins the span of an operation. `headers` are those of its request. */
  begin(operation: Begun, headers: IncomingHttpHeaders | undefined): void {
    const span = this.tracing?.begin(factsOf(operation), headers).span;
    if (span !== undefined) this.#open.set(operation.id, span);
  }

  /** Ends the span of an operation. Does nothing if another or an earlier process began it. */
  end(operationId: string, ended: Ended): void {
    this.#open.get(operationId)?.end(endOf(ended));
    this.#open.delete(operationId);
  }

  /** Returns books that record a span for each lifecycle operation when its end is written, because another process may have begun it. */
  watching(books: Books): Books {
    if (this.tracing === undefined) return books;
    return {
      ...books,
      commit: async (before, change, nowMs) => {
        const written = await books.commit(before, change, nowMs);
        if (written !== undefined) for (const each of change.operations ?? []) this.#note(each);
        return written;
      },
    };
  }

  #note(operation: Operation): void {
    const { requestedAtMs, endedAtMs } = operation;
    if (endedAtMs === null) return;
    const facts = { ...factsOf(operation), ageMs: endedAtMs - requestedAtMs };
    this.tracing?.begin(facts).span?.end(endOf(operation));
  }
}

function factsOf({ id, sandboxId, type }: Begun): SpanFacts {
  return {
    name: `sandbox ${type}`,
    kind: 'internal',
    attributes: { 'tollgate.sandbox_id': sandboxId, 'tollgate.operation_id': id, 'tollgate.operation': type },
  };
}

function endOf({ status, error }: Ended): SpanEnd {
  return {
    attributes: { 'tollgate.operation_status': status, 'error.type': error?.code },
    hasFailed: status === 'FAILED',
  };
}
