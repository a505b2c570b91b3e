import { Icon } from '../../parts/icon';
import { Popover } from '../../parts/popover';
import { COLUMNS, USUAL_COLUMNS } from './columns';

interface Props {
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
}

export function ColumnsMenu({ chosen, onChange }: Props) {
  return (
    <Popover
      align="end"
      label={
        <>
          <Icon name="columns" /> Columns
        </>
      }
    >
      {() => (
        <fieldset class="columns-sheet">
          <legend class="unseen">Columns of the table</legend>
          <ul>
            {COLUMNS.map(({ id, title }) => (
              <li key={id}>
                <label class="check">
                  <input
                    type="checkbox"
                    checked={chosen.includes(id)}
                    // The last column stays chosen, because an empty choice means the usual columns.
                    disabled={chosen.length === 1 && chosen[0] === id}
                    onChange={() =>
                      onChange(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id])
                    }
                  />
                  <span>{title}</span>
                </label>
              </li>
            ))}
          </ul>
          <button type="button" class="button slight" onClick={() => onChange(USUAL_COLUMNS)}>
            Default columns
          </button>
        </fieldset>
      )}
    </Popover>
  );
}
