import { fetchOnApproach, later } from '../shared/later.tsx';
import { TextFilter } from '../shared/text-filter.tsx';
import { isLost } from '../state/connection.ts';
import { route } from '../state/route.ts';

const SearchFound = later(async () => (await import('./search-found.tsx')).SearchFound);
fetchOnApproach('.search-all', [SearchFound]);

/** Searches the text of all conversations. What is searched for and the filters are in the address. */
export function SearchAll() {
  return (
    <search class="search-all">
      <TextFilter
        of="find"
        label="Search all conversations"
        placeholder="Search all conversations"
        isOff={isLost.value}
      />
      {route.value.find.trim() !== '' && <SearchFound />}
    </search>
  );
}
