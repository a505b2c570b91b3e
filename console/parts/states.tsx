import type { ComponentChildren } from 'preact';
import type { Failure } from '../api';
import { Icon, type IconName } from './icon';

/** A placeholder for an empty list, which names the next step. */
export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Shows a failure, and what the user can do. */
export function Failed({
  failure,
  onRetry,
}: {
  readonly failure: Failure;
  readonly onRetry?: (() => void) | undefined;
}) {
  const { requestId, retryAfterSeconds } = failure.more;
  return (
    <div class="failed" role="alert">
      <Icon name="warning" />
      <div>
        <p>{failure.message}</p>
        <p class="faint small">
          {failure.code}
          {requestId !== undefined && (
            <>
              {' · '}
              <code>{requestId}</code>
            </>
          )}
          {retryAfterSeconds !== undefined && ` · try again in ${retryAfterSeconds} s`}
        </p>
      </div>
      {onRetry !== undefined && (
        <button type="button" class="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A placeholder for text that is loading, as high as the text. */
export function Bone({ width = '6ch' }: { readonly width?: string }) {
  return <span class="bone" style={{ width }} />;
}
