import { useState } from 'preact/hooks';
import { setServerToken } from '../state/settings.ts';
import '../style/home.css';

/** Asks for the server's token, which is kept for this tab. */
export function TokenForm() {
  const [token, setToken] = useState('');
  return (
    <main class="home">
      <h1>This server requires a token</h1>
      <p class="quiet">An API key, or the TROUPE_TOKEN of the server. It is kept for this tab only.</p>
      <form
        class="home-token"
        onSubmit={(event) => {
          event.preventDefault();
          setServerToken(token.trim());
          location.reload();
        }}
      >
        <input
          type="password"
          autocomplete="off"
          aria-label="Token"
          placeholder="trp_… or TROUPE_TOKEN"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={token.trim() === ''}>
          Open
        </button>
      </form>
    </main>
  );
}
