import { Go } from '../shared/go.tsx';
import { conversation } from '../state/route.ts';
import { SearchAll } from './search-all.tsx';
import '../style/home.css';

/** Shown when the address names something that no longer exists or never did. */
export function Gone() {
  const id = conversation.value;
  return (
    <main class="home">
      <h1>{id === null ? 'There is no such page' : `There is no conversation “${id}”`}</h1>
      <p>
        {id === null ? 'The address leads nowhere.' : 'It may have been deleted, or the address has a typo.'}{' '}
        Search all conversations:
      </p>
      <SearchAll />
      <p>
        <Go to={{ conversation: null, view: '' }}>All conversations</Go>
      </p>
    </main>
  );
}
