import type { IncomingHttpHeaders } from 'node:http';
import { type ErrorCode, fail } from '../../../core/errors';
import { type Reader, reader } from '../../../core/http/query';
import { object, shape } from '../../../core/http/shape';
import { findUnfinished, openRunning, RUNNING_ERRORS, type RunningSandbox } from '../asking/access';
import { operate } from '../asking/operate';
import type { InsideService } from '../inside';
import type { OperationType } from '../life/states';
import type { FileContent } from '../suppliers/supplier';

/** The largest file that an endpoint returns or accepts as JSON. A larger one is sent raw. */
export const MOST_AS_JSON = 4 * 1_048_576;

/** The largest file that one upload may have. */
export const MOST_UPLOADED = 20 * 1_048_576;

export const FILE_ERRORS: readonly ErrorCode[] = [
  ...RUNNING_ERRORS,
  'PATH_INVALID',
  'FILE_NOT_FOUND',
  'FILE_TOO_LARGE',
];

/** The schema of a file's raw bytes. */
export const BYTES = { type: 'string', format: 'binary' } as const;

export const WRITTEN = {
  201: { description: 'The file is written.', schema: object({ path: shape.text, byteLength: shape.integer }) },
};

interface SandboxPlace {
  readonly accountId: string;
  readonly sandboxId: string | undefined;
  /** The headers of the request. */
  readonly headers: IncomingHttpHeaders;
}

/**
 * Rejects a request that no body can make valid, before its body is read.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_FINAL, NOT_SUPPORTED
 */
export async function requireFiles(service: InsideService, { accountId, sandboxId }: SandboxPlace): Promise<void> {
  const { offering } = await findUnfinished(service, accountId, sandboxId ?? '');
  if (!offering.capabilities.files) throw fail('NOT_SUPPORTED');
}

/** Runs a file operation in a running sandbox. @throws NOT_SUPPORTED and the errors of `openRunning` */
export async function withFiles<T>(
  service: InsideService,
  { accountId, sandboxId, headers }: SandboxPlace,
  type: OperationType,
  work: (running: RunningSandbox) => Promise<T>,
): Promise<T> {
  const running = await openRunning(service, accountId, sandboxId ?? '');
  if (!running.sandbox.offering.capabilities.files) throw fail('NOT_SUPPORTED');
  return operate(service, running, { type, headers }, () => work(running));
}

/**
 * Yields exactly the announced number of bytes, even if a command writes to the file meanwhile. Excess bytes would be read as the
 * next answer. A file that has become shorter breaks the answer off.
 */
export async function* exactly({ byteLength, content }: FileContent): AsyncGenerator<Buffer> {
  let left = byteLength;
  for await (const piece of content as AsyncIterable<Buffer>) {
    yield piece.subarray(0, left);
    left -= Math.min(left, piece.length);
    if (left === 0) return;
  }
  if (left > 0) throw fail('SUPPLIER_ERROR', { message: 'The file became shorter while it was read.' });
}

/** The meaning of a file's path, for the OpenAPI document. */
export const PATH_MEANING = "Relative to /workspace, or absolute in the sandbox's own root.";

/** Reads the path of a query string. */
export const readPath = reader({ type: 'string', minLength: 1, description: PATH_MEANING }, (text) => {
  if (text === '') throw new RangeError('expected a path');
  return text;
});

/** The `path` parameter, marked as required in OpenAPI. `requiredPath` rejects a request without it. */
export const PATH: { readonly path: Reader<string> } = {
  path: Object.assign(reader(readPath.schema ?? {}, readPath), { isRequired: true as const }),
};

/** Returns the path. @throws PATH_INVALID if there is none */
export function requiredPath(path: string | undefined): string {
  if (path === undefined) throw fail('PATH_INVALID', { param: 'path', message: 'path: expected one' });
  return path;
}
