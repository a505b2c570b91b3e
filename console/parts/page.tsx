import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { refetch } from '../api';
import type { Resource } from '../resource';
import { hrefOf } from '../router';
import { Icon } from './icon';
import { Bone, Failed } from './states';

interface Shown {
  /** The data that this part of the page shows. If the request for the data failed, the failure stands above the content. */
  readonly from?: Pick<Resource<unknown>, 'failure'> | undefined;
  /** The buttons at the end of the page's head. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

interface PageProps extends Shown {
  readonly title: ComponentChildren;
  /** Content beside the title. */
  readonly beside?: ComponentChildren;
  /** The parent page, to which a link above the title leads. */
  readonly back?: { readonly path: string; readonly name: string };
  /** The elements between the page's head and its content, such as filters. */
  readonly tools?: ComponentChildren;
}

/** A page with its head: title, buttons and the failure of its data. */
export function Page({ title, beside, back, tools, from, actions, children }: PageProps) {
  return (
    <div class="page">
      {back !== undefined && (
        <nav class="back quiet small" aria-label="Back">
          <a href={hrefOf(back.path)}>
            <Icon name="left" /> {back.name}
          </a>
        </nav>
      )}
      <header class="page-head row">
        <h1>{title}</h1>
        {beside}
        <span class="grow" />
        {actions}
      </header>
      {tools}
      <Failure from={from} />
      {children}
    </div>
  );
}

interface PanelProps extends Shown {
  /** The heading. A panel without one needs `label` as its accessible name. */
  readonly title?: ComponentChildren;
  readonly label?: string;
  /** A short remark in the heading. */
  readonly hint?: ComponentChildren;
  /** Content beside the heading. */
  readonly beside?: ComponentChildren;
  readonly look?: string | undefined;
}

/** A framed part of a page. */
export function Panel({ title, label, hint, beside, look, from, actions, children }: PanelProps) {
  const id = useId();
  return (
    <section
      class={look === undefined ? 'panel' : `panel ${look}`}
      aria-label={label}
      aria-labelledby={title === undefined ? undefined : id}
    >
      {title !== undefined && (
        <header class="panel-head row">
          <h2 id={id}>
            {title} {hint !== undefined && <span class="faint">{hint}</span>}
          </h2>
          {beside}
          <span class="grow" />
          {actions}
        </header>
      )}
      <Failure from={from} />
      {children}
    </section>
  );
}

function Failure({ from }: Pick<Shown, 'from'>) {
  return from?.failure === undefined ? null : <Failed failure={from.failure} onRetry={refetch} />;
}

export interface Stat {
  readonly name: string;
  /** The value; undefined while it is loading. */
  readonly value: ComponentChildren;
  readonly more: ComponentChildren;
  readonly look?: 'lead' | undefined;
  readonly isBad?: boolean;
}

/** A row of the most important numbers at the top of a page. */
export function Stats({ of }: { readonly of: readonly Stat[] }) {
  return (
    <dl class="stats">
      {of.map(({ name, value, more, look, isBad = false }) => (
        <div class={look === undefined ? 'stat' : `stat ${look}`} key={name}>
          <dt class="quiet small">{name}</dt>
          <dd class={isBad ? 'stat-value figure is-bad' : 'stat-value figure'}>{value ?? <Bone width="5ch" />}</dd>
          <dd class="quiet small figure">{more ?? <Bone width="11ch" />}</dd>
        </div>
      ))}
    </dl>
  );
}
