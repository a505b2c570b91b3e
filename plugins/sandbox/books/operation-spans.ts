import type { IncomingHttpHeaders } from 'node:http';
import type { Span } from '@opentelemetry/api';
import { contextIn, endSpan, tracer } from '../../../core/traces/tracing';
import type { Operation } from '../life/sandbox';
import type { Books } from './books';

type Begun = Pick<Operation, 'id' | 'sandboxId' | 'type'>;
type Ended = Pick<Operation, 'status'> & { readonly error?: Operation['error'] | undefined };

/** Records spans of the operations in sandboxes: their kind and outcome, but never commands, paths or contents. Those of lifecycle operations have the database's times. */
export class OperationSpans {
  /** The spans that have not ended, by operation id. */
  readonly #open = new Map<string, Span>();

  /** Begins the span of an operation. `headers` are those of its request. */
  begin(operation: Begun, headers: IncomingHttpHeaders | undefined): void {
    const span = beginSpan(operation, headers);
    if (span.isRecording()) this.#open.set(operation.id, span);
  }

  /** Ends the span of an operation. Does nothing if another or an earlier process began it. */
  end(operationId: string, ended: Ended): void {
    const span = this.#open.get(operationId);
    this.#open.delete(operationId);
    if (span !== undefined) endOperation(span, ended);
  }

  /** Returns books that record a span for each lifecycle operation when its end is written, because another process may have begun it. */
  watching(books: Books): Books {
    return {
      ...books,
      commit: async (before, change, nowMs) => {
        const written = await books.commit(before, change, nowMs);
        if (written !== undefined) for (const each of change.operations ?? []) note(each);
        return written;
      },
    };
  }
}

function note(operation: Operation): void {
  const { requestedAtMs, endedAtMs } = operation;
  if (endedAtMs !== null) endOperation(beginSpan(operation, undefined, requestedAtMs), operation, endedAtMs);
}

function beginSpan({ id, sandboxId, type }: Begun, headers?: IncomingHttpHeaders, startTime?: number): Span {
  const attributes = { 'tollgate.sandbox_id': sandboxId, 'tollgate.operation_id': id, 'tollgate.operation': type };
  return tracer.startSpan(
    `sandbox ${type}`,
    { attributes, ...(startTime !== undefined && { startTime }) },
    contextIn(headers),
  );
}

function endOperation(span: Span, { status, error }: Ended, endTime?: number): void {
  endSpan(span, { 'tollgate.operation_status': status, 'error.type': error?.code }, status === 'FAILED', endTime);
}
