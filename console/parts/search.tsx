import { useEffect, useState } from 'preact/hooks';
import { Icon } from './icon';

const PAUSE_MS = 180;

interface Props {
  readonly label: string;
  readonly value: string;
  /** Called once the user pauses typing. */
  readonly onChange: (value: string) => void;
}

export function Search({ label, value, onChange }: Props) {
  const [words, setWords] = useState(value);
  // biome-ignore lint/correctness/useExhaustiveDependencies: reports only what is typed
  useEffect(() => {
    if (words === value) return;
    const timer = setTimeout(() => onChange(words), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [words]);
  return (
    <label class="search">
      <Icon name="search" />
      <input
        type="search"
        aria-label={label}
        placeholder={label}
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
      />
    </label>
  );
}
