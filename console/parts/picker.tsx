import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Icon } from './icon';
import { Popover } from './popover';

export interface Option {
  readonly value: string;
  readonly text: string;
  readonly hint?: string;
}

interface Props {
  /** The name of the filter, such as `Model`. */
  readonly label: string;
  /** The chosen option; undefined means no filter. */
  readonly value: Option | undefined;
  readonly onChange: (value: string | undefined) => void;
  /** Whether one option is always chosen. Otherwise the first option is `All`, which chooses nothing. */
  readonly isNeeded?: boolean;
  /** What the user may type, as the field shows it while it is empty. Default: `Search`. */
  readonly hint?: string;
  readonly align?: 'end';
  /** Returns the options that match the typed words. */
  readonly find: (words: string) => Promise<readonly Option[]>;
}

/** A filter with a search field in a popover, so that users can choose from thousands of values. */
export function Picker({ label, value, onChange, isNeeded = false, hint = 'Search', align, find }: Props) {
  return (
    <Popover
      look={value === undefined ? 'button filter' : 'button filter is-set'}
      align={align}
      label={
        <>
          <span class={value === undefined ? '' : 'quiet'}>{label}</span>
          {value !== undefined && <span class="cut filter-value">{value.text}</span>}
          <Icon name="chevron" />
        </>
      }
    >
      {(close) => (
        <Choices
          label={label}
          value={value?.value}
          isNeeded={isNeeded}
          hint={hint}
          find={find}
          onChoose={(chosen) => {
            onChange(chosen);
            close();
          }}
        />
      )}
    </Popover>
  );
}

interface ChoicesProps {
  readonly label: string;
  readonly value: string | undefined;
  readonly isNeeded: boolean;
  readonly hint: string;
  readonly find: Props['find'];
  readonly onChoose: (value: string | undefined) => void;
}

function Choices({ label, value, isNeeded, hint, find, onChoose }: ChoicesProps) {
  const [words, setWords] = useState('');
  const [found, setFound] = useState<readonly Option[]>();
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const latest = useRef(find);
  latest.current = find;

  useEffect(() => field.current?.focus(), []);
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(
      async () => {
        const options = await latest.current(words).catch(() => []);
        if (isOld) return;
        setFound(options);
        setAt(0);
      },
      words === '' ? 0 : 120,
    );
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [words]);
  useEffect(() => {
    list.current?.querySelector(`[data-at="${at}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [at]);

  const isWhole = words === '' && !isNeeded;
  const all: readonly Option[] = isWhole ? [{ value: '', text: 'All' }, ...(found ?? [])] : (found ?? []);
  const choose = (option: Option | undefined) => {
    if (option !== undefined) onChoose(option.value === '' ? undefined : option.value);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setAt(Math.min(all.length - 1, Math.max(0, at + step)));
    }
    if (event.key === 'Enter') {
      event.preventDefault();
      choose(all[at]);
    }
  };
  return (
    <div class="picker">
      <div class="search">
        <Icon name="search" />
        <input
          ref={field}
          type="text"
          role="combobox"
          aria-label={`Search: ${label}`}
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={all[at] === undefined ? undefined : `${id}-${at}`}
          aria-autocomplete="list"
          placeholder={hint}
          autocomplete="off"
          spellcheck={false}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
      </div>
      <div id={id} class="picker-list" role="listbox" aria-label={label} ref={list}>
        {all.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above handles the keys
          <div
            key={option.value}
            id={`${id}-${index}`}
            data-at={index}
            role="option"
            tabIndex={-1}
            aria-selected={(value ?? '') === option.value}
            class={index === at ? 'choice is-at' : 'choice'}
            onClick={() => choose(option)}
          >
            <span class="cut">{option.text}</span>
            {option.hint !== undefined && <span class="faint cut">{option.hint}</span>}
            {(value ?? '') === option.value && <Icon name="check" />}
          </div>
        ))}
      </div>
      {found !== undefined && all.length === 0 && <p class="picker-none quiet small">No match for “{words}”.</p>}
    </div>
  );
}
