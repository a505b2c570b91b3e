import { Badge } from '../../parts/values';
import type { ShownProposal, ShownProposalRow } from '../shapes';

export const PROPOSALS = '/admin/v1/catalogue/proposals';

export function ProposalStatus({ status, number }: Pick<ShownProposal, 'status' | 'number'>) {
  if (status === 'open') return <Badge tone="accent">Open</Badge>;
  return number === null ? <Badge tone="warn">Waits</Badge> : <Badge tone="good">Applied</Badge>;
}

export const rowsIn = ({ rows }: Pick<ShownProposal, 'rows'>, state: ShownProposalRow['state']) =>
  rows.filter((row) => row.state === state).length;
