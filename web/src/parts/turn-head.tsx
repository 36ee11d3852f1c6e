import { go, route } from '../state/route.ts';
import { type Column, orderOf } from '../state/turn-figures.ts';

/** The columns of the turn list. A click on a name sorts; a second click reverses the order. */
export function TurnHead({ unit }: { unit: 'dollars' | 'tokens' }) {
  return (
    <thead>
      <tr>
        <Sorter column="turn" name="Turn" />
        <Sorter column="cost" name={unit === 'dollars' ? 'Cost' : 'Tokens'} />
        <Sorter column="cache" name="Cache" />
        <Sorter column="time" name="Time" />
      </tr>
    </thead>
  );
}

function Sorter({ column, name }: { column: Column; name: string }) {
  const order = orderOf(route.value.sort);
  const isOwn = order.column === column;
  // The first order shows what readers look for: the costliest, the longest, the least read from the cache.
  const isDescending = isOwn ? !order.isDescending : column !== 'cache';
  const sort = `${isDescending ? '-' : ''}${column}`;
  return (
    <th
      scope="col"
      class={`turn-head-${column}`}
      aria-sort={isOwn ? (order.isDescending ? 'descending' : 'ascending') : undefined}
    >
      <button type="button" onClick={() => go({ sort: sort === '-turn' ? '' : sort })}>
        {name}
        <span aria-hidden="true">{isOwn ? (order.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  );
}
