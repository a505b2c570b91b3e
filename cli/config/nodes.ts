import { type ConfigurationProblem, problemText } from '../../core/configuration/yaml-file';
import type { Columns } from '../output';

export interface NodeShape {
  readonly node: string;
  readonly name: string;
  readonly source: 'file' | 'database';
  readonly number: number | null;
  readonly revision: string;
  readonly since: string;
  readonly restartNeeded: readonly string[];
  readonly failure: { readonly number: number | null; readonly problems: readonly ConfigurationProblem[] } | null;
}

export interface StatusShape {
  readonly source: 'file' | 'database';
  readonly newest: { readonly number: number; readonly revision: string } | null;
  readonly nodes: readonly NodeShape[];
}

export const NODE_COLUMNS: Columns<NodeShape> = {
  node: ({ name }) => name,
  number: ({ number }) => number,
  revision: ({ revision }) => revision,
  since: ({ since }) => since,
  'restart needed for': ({ restartNeeded }) => restartNeeded.join(', ') || null,
  'could not take': ({ failure }) => (failure === null ? null : failureText(failure)),
};

export function failureText({ number, problems }: NonNullable<NodeShape['failure']>): string {
  const which = number === null ? '' : `revision ${number}: `;
  return which + problems.map(problemText).join('; ');
}
