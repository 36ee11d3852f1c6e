import { fetchOnApproach, later } from '../shared/later.tsx';
import { isLost } from '../state/connection.ts';
import { go, route } from '../state/route.ts';

const SearchFound = later(async () => (await import('./search-found.tsx')).SearchFound);
fetchOnApproach('.search-all', [SearchFound]);

/** Searches the text of all conversations. What is searched for and the filters are in the address. */
export function SearchAll() {
  const { find } = route.value;
  return (
    <search class="search-all">
      <input
        id="search"
        type="search"
        aria-label="Search all conversations"
        placeholder="Search all conversations  /"
        value={find}
        disabled={isLost.value}
        onInput={(event) => go({ find: event.currentTarget.value }, { replace: true })}
      />
      {find.trim() !== '' && <SearchFound />}
    </search>
  );
}
