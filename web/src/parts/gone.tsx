import { Go } from '../shared/go.tsx';
import { conversation } from '../state/route.ts';
import { SearchAll } from './search-all.tsx';
import '../style/home.css';

/** Shown when the address names something that no longer exists or never did. */
export function Gone() {
  return (
    <main class="home">
      <h1>There is no conversation “{conversation.value}”</h1>
      <p>It may have been deleted, or the address has a typo. Search the other conversations:</p>
      <SearchAll />
      <p>
        <Go to={{ conversation: null }}>All conversations</Go>
      </p>
    </main>
  );
}
