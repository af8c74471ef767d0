(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? '';
  const kept = `time_zone=${zone}`;
  document.documentElement.dataset.timeZone = zone;
  if (zone && !document.cookie.split('; ').includes(kept)) {
    document.cookie = `${kept}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === 'https:' ? '; Secure' : ''}`;
  }
})();
