/** The account and key whose money an operation moves. */
export interface Payer {
  readonly accountId: string;
  readonly keyId: string;
}

export type AccountStatus = 'active' | 'frozen';

export interface AccountState {
  readonly status: AccountStatus;
  readonly availableE8: bigint;
  readonly heldE8: bigint;
  /** Always `availableE8` + `heldE8`. */
  readonly postedE8: bigint;
  /** The number of the account's last entry. */
  readonly seq: number;
}
