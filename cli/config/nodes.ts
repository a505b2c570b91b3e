import { problemText } from '../../core/configuration/yaml-file';
import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type NodeShape = StatusShape['nodes'][number];

export type StatusShape = Answers['GET /admin/v1/config/status'];

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
