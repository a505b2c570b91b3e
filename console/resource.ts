import { useLayoutEffect, useState } from 'preact/hooks';
import { changes, exchange, Failure } from './api';

/** Data that a part of the page reads from the gateway, and its state. */
export interface Resource<T> {
  /** The last answer. While the page fetches another path, `data` still has the answer of the previous path. */
  readonly data: T | undefined;
  /** Why the last request failed; undefined if it succeeded. `data` keeps the answer before the failure. */
  readonly failure: Failure | undefined;
  readonly isLoading: boolean;
  /** Grows by one with each newer answer of the same path. */
  readonly version: number;
}

interface State<T> {
  readonly data: T | undefined;
  readonly failure: Failure | undefined;
  /** The path of the last answer or failure; undefined before the first. */
  readonly answered: string | undefined;
  readonly version: number;
}

interface Options {
  /** The delay in ms before the same path is fetched again, while the page is visible. Its ETag makes an unchanged answer cheap. */
  readonly everyMs?: number | undefined;
  /** A counter of the caller. When it changes, the path is fetched again at once. */
  readonly round?: number;
}

const NOTHING = { data: undefined, failure: undefined, answered: undefined, version: 0 };

/** Fetches a path of the API, and again when the path changes or the page has changed data. An undefined path fetches nothing. */
export function useResource<T>(path: string | undefined, { everyMs, round = 0 }: Options = {}): Resource<T> {
  const [state, setState] = useState<State<T>>(NOTHING);

  // A layout effect, so that the gateway already works while the browser paints.
  // biome-ignore lint/correctness/useExhaustiveDependencies: a change or another round fetches the same path again
  useLayoutEffect(() => {
    if (path === undefined) return;
    const aborter = new AbortController();
    const { signal } = aborter;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let etag: string | undefined;
    const fetchOnce = async () => {
      try {
        const answer = await exchange<T>(path, { signal, ifNoneMatch: etag });
        if (signal.aborted) return;
        etag = answer.etag;
        const { data } = answer;
        setState((before) => ({
          data: data ?? before.data,
          failure: undefined,
          answered: path,
          version: data === undefined || before.answered !== path ? before.version : before.version + 1,
        }));
      } catch (error) {
        if (!signal.aborted) setState((before) => ({ ...before, failure: toFailure(error), answered: path }));
      }
    };
    const again = async () => {
      if (document.visibilityState === 'visible') await fetchOnce();
      if (!signal.aborted) timer = setTimeout(again, everyMs);
    };
    void fetchOnce().then(() => {
      if (everyMs !== undefined && !signal.aborted) timer = setTimeout(again, everyMs);
    });
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, changes.value, round]);

  const { data, failure, answered, version } = state;
  // A repeated fetch of the same path does not count as loading, so that the page is not dimmed.
  return { data, failure, version, isLoading: path !== answered };
}

export function toFailure(error: unknown): Failure {
  return error instanceof Failure
    ? error
    : new Failure(0, 'BROKEN', error instanceof Error ? error.message : String(error));
}
