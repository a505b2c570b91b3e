import type { ComponentChildren } from 'preact';
import type { Failure } from '../api';
import { Button } from './button';
import { Icon, type IconName } from './icon';

interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly text: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** A placeholder for an empty list, which names the next step. */
export function Empty({ icon, title, text, children }: EmptyProps) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      <p class="quiet">{text}</p>
      {children}
    </div>
  );
}

/** Shows the failure of a request, and what the user can do about it. */
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
      {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
    </div>
  );
}

/** A placeholder for loading text, with the height of one line. */
export function Bone({ width = '6ch' }: { readonly width?: string }) {
  return <span class="bone" style={{ width }} />;
}
